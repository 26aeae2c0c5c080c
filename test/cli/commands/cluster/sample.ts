import type {
  CloudFacts,
  ClusterFacts,
  ClusterNec,
  ClusterPod,
} from '../../../../cli/commands/cluster/cluster-facts.ts';
import {
  decodeClaim,
  decodeEip,
  decodeNec,
  decodeNode,
  decodePod,
  decodeVeni,
  decodeVip,
} from '../../../../cli/commands/cluster/decode-objects.ts';
import type { Eni } from '../../../../cloud/cloud.ts';
import { API_VERSION } from '../../../../crd/names.ts';
import { vpcIpName } from '../../../../crd/vpc-ip.ts';
import { known } from '../../../../inspection/node/known.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';

/** When the samples are looked at. */
export const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
/** Long before that. */
export const OLD = '2026-02-01T00:00:00Z';
/** Within any grace. */
export const FRESH = '2026-03-01T11:59:30Z';

/** What a NodeENIConfig of a sample has beside its one ENI. */
export type NecParts = {
  readonly spec?: object;
  readonly status?: object;
  readonly metadata?: object;
  readonly addresses?: readonly object[];
  /** Of its subnet; default a /24 of its own. */
  readonly cidr?: string;
};

/** Makes the NodeENIConfig of node `n<index>`: one ENI with the addresses 10.0.<index>.10 and so on. */
export function necObject(index: number, ips: readonly string[], parts: NecParts = {}): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'NodeENIConfig',
    metadata: { name: `n${index}`, uid: `uid-n${index}`, creationTimestamp: OLD, ...parts.metadata },
    spec: { desiredRouteENIIP: ips.length, maxRouteENI: 2, maxIPPerENI: 9, observedSupplyEpoch: 1, ...parts.spec },
    status: {
      supplyEpoch: 1,
      instanceID: `ins-0000000${index}`,
      instanceType: 'S5.MEDIUM4',
      zone: 'ap-guangzhou-3',
      vpcID: 'vpc-00000001',
      conditions: [{ type: 'Ready', status: 'True', reason: 'SupplyMet', lastTransitionTime: OLD }],
      eniInfos: [
        {
          eniID: `eni-0000000${index}`,
          mac: `20:90:6f:00:00:0${index}`,
          mode: 'route-eni',
          primaryIP: `10.0.${index}.2`,
          gateway: `10.0.${index}.1`,
          subnetID: `subnet-${index}`,
          subnetCIDR: parts.cidr ?? `10.0.${index}.0/24`,
          deviceIndex: 1,
          state: 'Attached',
          addresses: parts.addresses ?? ips.map((ip) => addressOf(ip)),
        },
      ],
      ...parts.status,
    },
  };
}

/** Makes an address of an ENI. */
export function addressOf(ip: string, state = 'Assigned'): object {
  return { ip, assignmentID: `a-${ip.replaceAll(':', '.')}`, state };
}

/** Makes a Node. */
export function nodeObject(
  name: string,
  parts: { readonly spec?: object; readonly isReady?: boolean } = {},
): KubeObject {
  const status = parts.isReady === false ? 'Unknown' : 'True';
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, creationTimestamp: OLD },
    spec: { ...parts.spec },
    status: { conditions: [{ type: 'Ready', status }] },
  };
}

/** Makes a running Pod. */
export function podObject(name: string, nodeName: string, ips: readonly string[], metadata: object = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, creationTimestamp: OLD, ...metadata },
    spec: { nodeName, containers: [{ name: 'main', image: 'none' }] },
    status: { phase: 'Running', podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) },
  };
}

/** Makes the VpcIP of a Pod's address. */
export function vipObject(ip: string, pod: string, index: number, metadata: object = {}, eniID = ''): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'VpcIP',
    metadata: { name: vpcIpName(ip), uid: `uid-vip-${ip}`, creationTimestamp: OLD, ...metadata },
    spec: {
      type: 'Pod',
      ip,
      claimRef: { namespace: 'shop', name: pod, uid: `uid-${pod}` },
      subnetID: `subnet-${index}`,
      nodeName: `n${index}`,
    },
    status: { phase: 'Assigned', eniID: eniID === '' ? `eni-0000000${index}` : eniID },
  };
}

/** Makes the VpcIPClaim of a Pod. */
export function claimObject(pod: string, spec: object = {}, metadata: object = {}): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'VpcIPClaim',
    metadata: { name: pod, namespace: 'shop', uid: `uid-claim-${pod}`, creationTimestamp: OLD, ...metadata },
    spec: { podUID: `uid-${pod}`, mode: 'route-eni', ...spec },
    status: { phase: 'Bound' },
  };
}

/** Makes facts of objects by their kinds, as one look would. */
export function factsOf(objects: readonly KubeObject[], cloud?: CloudFacts, takenAtMs = NOW_MS): ClusterFacts {
  const all = <T>(kind: string, decode: (object: KubeObject) => T | undefined): readonly T[] =>
    objects.filter((object) => object.kind === kind).flatMap((object) => decode(object) ?? []);
  return {
    takenAtMs,
    necs: all<ClusterNec>('NodeENIConfig', decodeNec),
    nodes: known(all('Node', decodeNode)),
    pods: known(all<ClusterPod>('Pod', decodePod)),
    vips: known(all('VpcIP', decodeVip)),
    claims: known(all('VpcIPClaim', decodeClaim)),
    venis: known(all('VpcENI', decodeVeni)),
    eips: known(all('EIPClaim', decodeEip)),
    cloud: cloud === undefined ? undefined : known(cloud),
  };
}

/** Makes the ENI of node `n<index>` as the cloud has it. */
export function cloudEni(index: number, ips: readonly string[], parts: Partial<Eni> = {}): Eni {
  return {
    eniId: `eni-0000000${index}`,
    name: `tke-${index}`,
    description: '',
    mac: `20:90:6f:00:00:0${index}`,
    vpcId: 'vpc-00000001',
    subnetId: `subnet-${index}`,
    zone: 'ap-guangzhou-3',
    isPrimary: false,
    state: 'AVAILABLE',
    attachment: { instanceId: `ins-0000000${index}`, deviceIndex: 1 },
    ips: [
      { ip: `10.0.${index}.2`, isPrimary: true, state: 'AVAILABLE' },
      ...ips.map((ip) => ({ ip, isPrimary: false, state: 'AVAILABLE' as const })),
    ],
    securityGroupIds: [],
    tags: {
      'tke-clusterId': 'cls-1',
      'tke-created-eni': 'true',
      'tke-node': `n${index}`,
      'tke-nec-uid': `uid-${index}`,
    },
    createdAtMs: Date.parse(OLD),
    ...parts,
  };
}

/** Makes what the cloud tells of those ENIs and the subnets of nodes. */
export function cloudOf(enis: readonly Eni[], parts: Partial<CloudFacts> = {}): CloudFacts {
  const ids = [...new Set(enis.map(({ subnetId }) => subnetId))];
  return {
    clusterId: 'cls-1',
    enis,
    isConsistent: true,
    subnets: ids.map((subnetId) => ({
      subnetId,
      vpcId: 'vpc-00000001',
      zone: 'ap-guangzhou-3',
      cidr: `10.0.${subnetId.slice(-1)}.0/24`,
      totalIps: 253,
      freeIps: 100,
    })),
    ...parts,
  };
}

/** Two nodes: `n1` well, with three addresses of which two are in use; `n2` in want of a subnet with room. */
export const SAMPLE: readonly KubeObject[] = [
  necObject(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12']),
  necObject(2, ['10.0.2.10'], {
    spec: { desiredRouteENIIP: 6 },
    status: {
      allocatableRouteENIIPs: 1,
      conditions: [
        {
          type: 'Ready',
          status: 'False',
          reason: 'SubnetExhausted',
          message: 'subnet-2 has no address left',
          lastTransitionTime: OLD,
        },
      ],
    },
    metadata: { annotations: { 'tke.cloud.tencent.com/route-eni-max-attach': '2' } },
  }),
  nodeObject('n1'),
  nodeObject('n2'),
  podObject('web-0', 'n1', ['10.0.1.10']),
  podObject('web-1', 'n1', ['10.0.1.11'], { creationTimestamp: FRESH }),
  podObject('web-2', 'n2', ['10.0.2.10']),
  vipObject('10.0.1.10', 'web-0', 1),
  vipObject('10.0.1.11', 'web-1', 1, { creationTimestamp: FRESH }),
  vipObject('10.0.2.10', 'web-2', 2),
  claimObject('web-0'),
  claimObject('web-1'),
  claimObject('web-2'),
];

/** A cluster that keeps addresses, EIPs and whole ENIs: some in use, some waiting, one that failed. */
export const KEPT_SAMPLE: readonly KubeObject[] = [
  necObject(1, ['10.0.1.10'], {
    status: {
      eniInfos: [
        directEni('eni-0000000a', '10.0.1.20', { namespace: 'shop', name: 'big-0', uid: 'uid-big-0' }),
        directEni('eni-0000000b', '10.0.1.21', { namespace: 'shop', name: 'big-1' }),
        directEni('eni-0000000c', '10.0.1.22'),
        directEni('eni-0000000d', '10.0.1.23'),
      ],
    },
  }),
  necObject(2, ['10.0.2.10', '10.0.2.11']),
  podObject('db-0', 'n1', ['10.0.1.10']),
  podObject('big-0', 'n1', ['10.0.1.20']),
  podObject('job-0', 'n1', ['10.0.1.23']),
  podObject('web-0', 'n2', ['10.0.2.12']),
  keptClaim('db-0', { phase: 'Bound', ips: ['10.0.1.10'], nodeName: 'n1' }),
  keptClaim('db-1', { phase: 'Retained', ips: ['10.0.2.10'], nodeName: 'n2', retainedSince: '2026-03-01T09:00:00Z' }),
  keptClaim('db-2', { phase: 'Retained', ips: ['10.0.2.11'], nodeName: 'n2', retainedSince: '2026-02-27T12:00:00Z' }),
  keptClaim('db-3', { phase: 'Retained', ips: ['10.0.2.77'], retainedSince: '2026-03-01T11:00:00Z' }),
  keptClaim('db-4', {
    phase: 'Pending',
    nodeName: 'n2',
    message: '10.0.1.44 is of subnet-1 in zone ap-guangzhou-3, node n2 in zone ap-guangzhou-4',
    conditions: [
      { type: 'Ready', status: 'False', reason: 'AddressElsewhere', lastTransitionTime: '2026-03-01T11:15:00Z' },
    ],
  }),
  keptClaim('db-5', {
    phase: 'Failed',
    message: '10.0.1.45 is taken: eni-99999999 of another cluster has it',
    conditions: [
      { type: 'Ready', status: 'False', reason: 'AddressTaken', lastTransitionTime: '2026-03-01T11:58:00Z' },
    ],
  }),
  // The record of a Pod whose address nobody keeps.
  claimObject('web-0', {}, { labels: { 'tke.cloud.tencent.com/record': 'pod' } }),
  vipObject('10.0.1.10', 'db-0', 1),
  keptVip('10.0.2.10', 'db-1', 'n2', 'eni-00000002'),
  keptVip('10.0.2.11', 'db-2', 'n2', 'eni-00000002'),
  keptVip('10.0.2.77', 'db-3', 'n2', undefined),
  eipObject('db-0', { phase: 'Bound', publicIP: '203.0.113.5', nodeName: 'n1' }),
  eipObject('db-1', { phase: 'Retained', publicIP: '203.0.113.6', retainedSince: OLD }),
  eipObject('db-6', {
    phase: 'Failed',
    message: 'AllocateAddresses: AddressQuotaLimitExceeded: the quota of EIPs in the region is used up',
    conditions: [{ type: 'Ready', status: 'False', reason: 'Failed', lastTransitionTime: '2026-03-01T10:00:00Z' }],
  }),
  veniObject('eni-0000000b', 'big-1', 'Attached'),
  veniObject('eni-0000000e', 'big-2', 'Available'),
];

/** Makes an exclusive ENI of a NodeENIConfig. */
export function directEni(eniID: string, primaryIP: string, claim?: object): object {
  const mac = `20:90:6f:00:01:${eniID.slice(-2)}`;
  const place = { subnetID: 'subnet-1', subnetCIDR: '10.0.1.0/24', gateway: '10.0.1.1', deviceIndex: 3 };
  return { eniID, mac, mode: 'direct-eni', primaryIP, ...place, state: 'Attached', ...(claim && { claim }) };
}

function keptClaim(pod: string, status: object): KubeObject {
  return { ...claimObject(pod, { deletePolicy: 'Never' }), status };
}

function keptVip(ip: string, pod: string, nodeName: string, eniID: string | undefined): KubeObject {
  const vip = vipObject(ip, pod, 2);
  const spec = { type: 'Pod', ip, claimRef: { namespace: 'shop', name: pod }, subnetID: 'subnet-2', nodeName };
  return { ...vip, spec, status: { phase: 'Kept', ...(eniID && { eniID }) } };
}

function eipObject(pod: string, status: object): KubeObject {
  const metadata = { name: pod, namespace: 'shop', uid: `uid-eip-${pod}`, creationTimestamp: OLD };
  return { apiVersion: API_VERSION, kind: 'EIPClaim', metadata, spec: { deletePolicy: 'Never' }, status };
}

function veniObject(eniID: string, pod: string, phase: string): KubeObject {
  const spec = { mode: 'direct-eni', subnetID: 'subnet-1', claimRef: { namespace: 'shop', name: pod } };
  const metadata = { name: `tke-${eniID}`, uid: `uid-${eniID}`, creationTimestamp: OLD };
  return { apiVersion: API_VERSION, kind: 'VpcENI', metadata, spec, status: { phase, eniID, retainedSince: OLD } };
}
