import { ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf } from '../../runtime/json.ts';
import { claimOf, necOf, podOf, vipOf } from '../../test/scheduler/scheduler-scene.ts';

/** Sizes of the cluster of the benchmark. */
export const WORLD = {
  nodes: 5_000,
  enisPerNode: 2,
  addressesPerNode: 30,
  podsPerNode: 20,
  /** Claims with an address each: of StatefulSets, without a Pod now. */
  claims: 10_000,
  zones: 3,
  subnetsPerZone: 20,
} as const;

/** Changes of NodeENIConfigs and Pods that are watched, a second. */
export const CHANGES_PER_SECOND = 200;

/** Names a node as TKE does, by its address. */
export function nodeName(index: number): string {
  return `10.0.${index >> 8}.${index & 255}`;
}

/** Names the zone of a node. */
function zoneOf(index: number): string {
  return `ap-guangzhou-${(index % WORLD.zones) + 1}`;
}

/** The object of a node's supply; `generation` changes what is on it a little. */
function necAt(index: number, generation = 0): KubeObject {
  const perEni = WORLD.addressesPerNode / WORLD.enisPerNode;
  const subnetID = `subnet-z${index % WORLD.zones}s${Math.floor(index / WORLD.zones) % WORLD.subnetsPerZone}`;
  const enis = Array.from({ length: WORLD.enisPerNode }, (_, eni) => {
    const ips = Array.from({ length: perEni }, (__, at) =>
      addressOf(index * WORLD.addressesPerNode + eni * perEni + at),
    );
    const isKept = eni === 0 && index * 2 < WORLD.claims;
    const kept = isKept ? keptOf(index, ips) : {};
    return { eniID: `eni-${index}x${eni}`, subnetID, ips: isKept ? ips.slice(2) : ips, kept };
  });
  const made = necOf({
    name: nodeName(index),
    zone: zoneOf(index),
    maxRouteENI: 5,
    maxIPPerENI: 19,
    allocatable: 40 + ((index + generation) % 20),
    enis,
  });
  return whole(made, index + 1 + generation);
}

/** Two kept addresses on each of the first nodes. */
function keptOf(index: number, ips: readonly string[]): Readonly<Record<string, string>> {
  return { [ips[0] ?? '']: `default/web-${index * 2}`, [ips[1] ?? '']: `default/web-${index * 2 + 1}` };
}

function addressOf(serial: number): string {
  return `10.${64 + (serial >> 16)}.${(serial >> 8) & 255}.${serial & 255}`;
}

/** The address that a claim has: the first or second of the first ENI of its node. */
function keptAddress(claim: number): string {
  return addressOf((claim >> 1) * WORLD.addressesPerNode + (claim & 1));
}

/** A Pod that is bound, as an API server shows it: 4 kB, of which the extender keeps a few fields. */
function boundPodAt(serial: number): KubeObject {
  const node = Math.floor(serial / WORLD.podsPerNode);
  const at = serial % WORLD.podsPerNode;
  const ip = addressOf(node * WORLD.addressesPerNode + 3 + at);
  const pod = podOf({ name: `app-${serial}`, nodeName: nodeName(node), ip, phase: 'Running' });
  const spec = { ...POD_SPEC, ...recordOf(pod['spec']) };
  const status = { conditions: conditionsOf('Initialized', 'Ready', 'PodScheduled'), ...recordOf(pod['status']) };
  return whole({ ...pod, spec, status }, serial + 1);
}

/** A Node, with 40 images: 8 kB, of which the extender keeps the name. */
function nodeAt(index: number): KubeObject {
  const images = Array.from({ length: 40 }, (_, at) => ({ names: [imageName(index + at)], sizeBytes: 1e8 + at }));
  const status = { conditions: conditionsOf('MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'), images };
  return whole({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName(index) }, status }, index + 1);
}

function imageName(serial: number): string {
  return `ccr.ccs.tencentyun.com/library/image-${serial % 100}@sha256:${String(serial).padStart(64, '0')}`;
}

function conditionsOf(...types: readonly string[]): readonly object[] {
  const at = '2026-11-01T00:00:00Z';
  return types.map((type) => {
    const message = `the kubelet reports on ${type} in some words`;
    return { type, status: 'True', reason: `Kubelet${type}`, message, lastProbeTime: at, lastTransitionTime: at };
  });
}

const POD_SPEC = {
  volumes: ['config', 'data', 'token'].map((name) => ({ name, configMap: { name: `app-${name}`, defaultMode: 420 } })),
  tolerations: ['not-ready', 'unreachable'].map((name) => ({
    ...{ key: `node.kubernetes.io/${name}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
  })),
  initContainers: ['wait', 'migrate'].map((name) => ({
    ...{ name, image: imageName(7), command: ['/bin/sh', '-c', 'until nslookup db; do sleep 1; done'] },
    env: Array.from({ length: 8 }, (_, at) => ({ name: `SETTING_${at}`, value: `value number ${at}` })),
  })),
};

/** With what an API server adds to each object: its version, and which manager wrote which field. */
function whole(object: KubeObject, version: number): KubeObject {
  const managedFields = ['kube-controller-manager', 'kubelet'].map((manager) => ({
    ...{ manager, operation: 'Update', apiVersion: 'v1', time: '2026-11-01T00:00:00Z', fieldsType: 'FieldsV1' },
    fieldsV1: { 'f:status': Object.fromEntries(MANAGED.map((name) => [`f:${name}`, { '.': {}, 'f:name': {} }])) },
  }));
  const { metadata } = object;
  return { ...object, metadata: Object.assign({ ...metadata, resourceVersion: String(version) }, { managedFields }) };
}

const MANAGED = ['conditions', 'containerStatuses', 'hostIP', 'phase', 'podIP', 'podIPs', 'startTime', 'images'];

/** A Pod that asks for a place; one of four comes back to a kept address. */
export function newPodAt(serial: number): KubeObject {
  const isStatic = serial % 4 === 0;
  const name = isStatic ? `web-${(serial * 7) % WORLD.claims}` : `new-${serial}`;
  const annotations = { [POD_ANNOTATION.networks]: 'tke-route-eni', 'kubectl.kubernetes.io/restartedAt': `${serial}` };
  return podOf({ name, uid: `uid-new-${serial}`, isStatic, annotations, resources: { [ENI_IP_RESOURCE]: '1' } });
}

/** The objects of the cluster: of each resource how many, and which. */
export const COLLECTIONS: Readonly<Record<string, readonly [number, (index: number) => KubeObject]>> = {
  nodes: [WORLD.nodes, nodeAt],
  nodeeniconfigs: [WORLD.nodes, (i) => necAt(i)],
  pods: [WORLD.nodes * WORLD.podsPerNode, boundPodAt],
  configmaps: [1, subnetsMap],
  vpcipclaims: [WORLD.claims, (i) => whole(claimAt(i), i + 1)],
  vpcips: [WORLD.claims, (i) => whole(vipOf(keptAddress(i), `web-${i}`, subnetAt(i >> 1)), i + 1)],
};

/** The changes of a resource that a watch shows one after the other; absent: none. */
export const CHANGES: Readonly<Record<string, (serial: number) => KubeObject>> = {
  pods: (serial) => boundPodAt((serial * 7919) % (WORLD.nodes * WORLD.podsPerNode)),
  nodeeniconfigs: (serial) => necAt((serial * 31) % WORLD.nodes, serial),
};

/** What ipamd tells of the subnets of all zones, in one ConfigMap. */
function subnetsMap(): KubeObject {
  const ids = Array.from({ length: WORLD.zones * WORLD.subnetsPerZone }, (_, index) => subnetAt(index));
  const perSubnet = Math.ceil(WORLD.nodes / ids.length) * (WORLD.addressesPerNode + WORLD.enisPerNode);
  const texts = ids.map((id, index) => {
    const supply = { zone: zoneOf(index), cidr: '10.1.0.0/20', free: 500, total: 4_093, held: perSubnet, common: true };
    return [id, JSON.stringify(supply)] as const;
  });
  const metadata = { name: 'tke-eni-subnets', namespace: 'kube-system' };
  return whole({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: Object.fromEntries(texts) }, 1);
}

function claimAt(index: number): KubeObject {
  return claimOf({ name: `web-${index}`, ip: keptAddress(index), nodeName: nodeName(index >> 1) });
}

function subnetAt(node: number): string {
  return `subnet-z${node % WORLD.zones}s${Math.floor(node / WORLD.zones) % WORLD.subnetsPerZone}`;
}
