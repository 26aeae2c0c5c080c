import { ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import type { KubeClient, KubeObject, ListPage, ResourceType, WatchEvent } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
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
  return versioned(made, index + 1 + generation);
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

/** A Pod that is bound. */
function boundPodAt(serial: number): KubeObject {
  const node = Math.floor(serial / WORLD.podsPerNode);
  const at = serial % WORLD.podsPerNode;
  const ip = addressOf(node * WORLD.addressesPerNode + 3 + at);
  return versioned(podOf({ name: `app-${serial}`, nodeName: nodeName(node), ip, phase: 'Running' }), serial + 1);
}

/** A Pod that asks for a place; one of four comes back to a kept address. */
export function newPodAt(serial: number): KubeObject {
  const isStatic = serial % 4 === 0;
  const name = isStatic ? `web-${(serial * 7) % WORLD.claims}` : `new-${serial}`;
  const annotations = { [POD_ANNOTATION.networks]: 'tke-route-eni', 'kubectl.kubernetes.io/restartedAt': `${serial}` };
  return podOf({ name, uid: `uid-new-${serial}`, isStatic, annotations, resources: { [ENI_IP_RESOURCE]: '1' } });
}

function versioned(object: KubeObject, version: number): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}

const COUNTS: Readonly<Record<string, readonly [number, (index: number) => KubeObject]>> = {
  nodes: [WORLD.nodes, (i) => versioned({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName(i) } }, i + 1)],
  nodeeniconfigs: [WORLD.nodes, (i) => necAt(i)],
  pods: [WORLD.nodes * WORLD.podsPerNode, boundPodAt],
  configmaps: [1, subnetsMap],
  vpcipclaims: [WORLD.claims, (i) => versioned(claimAt(i), i + 1)],
  vpcips: [WORLD.claims, (i) => versioned(vipOf(keptAddress(i), `web-${i}`, subnetAt(i >> 1)), i + 1)],
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
  return versioned({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: Object.fromEntries(texts) }, 1);
}

function claimAt(index: number): KubeObject {
  return claimOf({ name: `web-${index}`, ip: keptAddress(index), nodeName: nodeName(index >> 1) });
}

function subnetAt(node: number): string {
  return `subnet-z${node % WORLD.zones}s${Math.floor(node / WORLD.zones) % WORLD.subnetsPerZone}`;
}

/** An API server's client without one: objects are made as they are listed, and changes come at a steady rate. */
export function worldClient(clock: Clock): KubeClient {
  const refuse = (): never => {
    throw new Error('nothing is written in this benchmark');
  };
  return {
    get: async () => undefined,
    listPage: async (type, { limit = 500, continueToken = '0' }) => pageOf(type, Number(continueToken), limit),
    watch: (type, _query, signal) => changesOf(type, clock, signal),
    create: refuse,
    update: refuse,
    patch: refuse,
    delete: refuse,
  };
}

const VERSION = 1_000_000;

function pageOf({ plural }: ResourceType, from: number, limit: number): ListPage {
  const [count, at] = COUNTS[plural] ?? [0, boundPodAt];
  const to = Math.min(count, from + limit);
  const items = Array.from({ length: to - from }, (_, index) => at(from + index));
  return { items, resourceVersion: String(VERSION), ...(to < count ? { continueToken: String(to) } : {}) };
}

async function* changesOf({ plural }: ResourceType, clock: Clock, signal: AbortSignal): AsyncIterable<WatchEvent> {
  const isBusy = plural === 'nodeeniconfigs' || plural === 'pods';
  for (let serial = 1; !signal.aborted; serial++) {
    await clock.sleep(isBusy ? 2_000 / CHANGES_PER_SECOND : 60_000, signal).catch(() => {});
    if (signal.aborted || !isBusy) continue;
    // As an API server's watch does, each object comes as text.
    const object =
      plural === 'pods' ? boundPodAt((serial * 7919) % 100_000) : necAt((serial * 31) % WORLD.nodes, serial);
    yield { kind: 'modified', object: versioned(JSON.parse(JSON.stringify(object)), VERSION + serial) };
  }
}
