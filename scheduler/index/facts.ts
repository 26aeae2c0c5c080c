import { NODE_SUBNETS_LABEL } from '../../crd/names.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { readNodeEniConfig } from '../../crd/read-node-eni-config.ts';
import { askedFor, type Held, heldIn, unseenCreationsOf } from '../../crd/subnet-supply.ts';
import { isRecord } from '../../runtime/decode.ts';

/** What is kept of a Node. */
export type NodeFacts = {
  readonly name: string;
  /** A super node has neither instance nor ENIs: its Pods get addresses in another way. */
  readonly isSuper: boolean;
  /** The subnets of its new ENIs by its label; empty: it names none. */
  readonly subnetIds: readonly string[];
};

/** One ENI of a node, as far as places on it are counted. */
export type EniFacts = {
  readonly eniId: string;
  readonly isShared: boolean;
  readonly subnetId: string;
  readonly cidr: string;
  /** Serves new Pods now. */
  readonly isServing: boolean;
  /** Takes a place on the instance now, and will not for long, or is about to serve. */
  readonly isChanging: boolean;
  /** IPv4 addresses for Pods; of an ENI without any, its IPv6 addresses. */
  readonly ips: readonly string[];
  /** Keys of the claims that addresses on it, or it as a whole, are kept for. */
  readonly claims: readonly string[];
  /** Of the addresses those that are for any Pod, and such that are asked for. */
  readonly plain: number;
  /** Addresses that are asked for, kept ones too: so much less room. */
  readonly asked: number;
};

/** A shared ENI that is asked for, with its first addresses. */
export type ComingEni = { readonly subnetId: string; readonly ips: number };

/** What is kept of a NodeENIConfig. A limit that is absent is not known. */
export type NecFacts = {
  readonly name: string;
  readonly zone: string;
  /** Pods of the node may keep their addresses. */
  readonly isStatic: boolean;
  readonly mostEnis?: number;
  readonly ipsPerEni?: number;
  readonly allocatable?: number;
  readonly staticPlaces: number;
  readonly mostDirectEnis?: number;
  readonly mostEips?: number;
  /** The only subnets that new ENIs are made in; empty: the cluster's. */
  readonly subnetIds: readonly string[];
  readonly enis: readonly EniFacts[];
  /** Not among `enis` yet. */
  readonly comingEnis: readonly ComingEni[];
  /** What it takes of each subnet. */
  readonly held: readonly Held[];
  /** The cloud is being asked for an ENI or addresses. */
  readonly isBinding: boolean;
};

/** What is kept of a VpcIPClaim that holds an address. */
export type ClaimFacts = {
  /** `namespace/name`, of its Pod too. */
  readonly key: string;
  readonly uid: string;
  readonly mode: 'route-eni' | 'direct-eni';
  /** Its addresses, the first family first. */
  readonly ips: readonly string[];
  /** The node that its address is on. */
  readonly nodeName: string;
  readonly nominatedIp?: string;
  readonly nominatedSubnetIds?: readonly string[];
  /** Its reservation: for which node, and since when by the wall clock; NaN when nobody can tell. */
  readonly reserved?: { readonly nodeName: string; readonly sinceMs: number };
};

/** What is kept of a VpcIP that is held for a claim. */
export type VipFacts = { readonly ip: string; readonly claimKey: string; readonly subnetId: string };

/** Annotation of a VpcIPClaim: when the scheduler wrote `spec.nodeName`; RFC 3339. */
export const RESERVED_AT_ANNOTATION = 'tke.cloud.tencent.com/reserved-at';

/** Label of VpcIPs and VpcIPClaims that only say, for people, what Pods without a kept address have. */
export const RECORD_LABEL = 'tke.cloud.tencent.com/record';

const SUPER_NODE = { label: 'node.kubernetes.io/instance-type', value: 'eklet' } as const;
type Shape = Readonly<Record<string, unknown>>;

/** Trims a Node. Pure. */
export function readNode(object: Shape): NodeFacts {
  const metadata = recordOf(object['metadata']);
  const labels = recordOf(metadata['labels']);
  return {
    name: textOf(metadata['name']),
    isSuper: labels[SUPER_NODE.label] === SUPER_NODE.value,
    subnetIds: textOf(labels[NODE_SUBNETS_LABEL])
      .split(/[_.]/)
      .filter((id) => id !== ''),
  };
}

const BINDING = ['CreateNetworkInterface', 'AttachNetworkInterface', 'AssignPrivateIpAddresses'];
const MIGRATION = 'MigratePrivateIpAddress';

/** Trims a NodeENIConfig; of what is malformed nothing is known. Pure. */
export function readNec(object: Shape): NecFacts | undefined {
  const read = readNodeEniConfig(object);
  if (read === undefined) return undefined;
  const { spec = {}, status = {}, settings, metadata } = read.config;
  const actions = (status.intents ?? []).map(({ action }) => action);
  return {
    name: metadata.name,
    zone: status.zone ?? '',
    isStatic: spec.enableStaticIP === true,
    ...some('mostEnis', settings.routeMaxAttach ?? spec.maxRouteENI),
    ...some('ipsPerEni', settings.maxIpPerEni ?? spec.maxIPPerENI),
    ...some('allocatable', status.allocatableRouteENIIPs),
    staticPlaces: status.staticRouteENIIPs ?? 0,
    ...some('mostDirectEnis', mostDirectEnis(settings.directMaxAttach ?? spec.maxDirectENI, status)),
    ...some('mostEips', status.maxEIPs),
    subnetIds: spec.subnetIDs ?? [],
    enis: (status.eniInfos ?? []).map((eni) => readEni(eni, status)),
    comingEnis: comingOf(status),
    held: heldIn(status),
    isBinding: actions.some((action) => action === MIGRATION || BINDING.includes(action)),
  };
}

function comingOf(status: NodeEniConfigStatus): readonly ComingEni[] {
  // An exclusive ENI is asked for without addresses.
  return unseenCreationsOf(status).flatMap(({ subnetID, ipCount }) => {
    return subnetID === undefined || ipCount === undefined ? [] : [{ subnetId: subnetID, ips: ipCount }];
  });
}

function readEni(eni: NodeEniInfo, status: NodeEniConfigStatus): EniFacts {
  const isShared = eni.mode !== 'direct-eni';
  const all = eni.addresses ?? [];
  const first = all.some(({ ip }) => !ip.includes(':')) ? all.filter(({ ip }) => !ip.includes(':')) : all;
  const marks = isShared ? all.map(({ claim }) => claim) : [eni.claim];
  const plain = first.filter(({ claim, state }) => claim === undefined && state === 'Assigned').length;
  return {
    eniId: eni.eniID,
    isShared,
    subnetId: eni.subnetID ?? '',
    cidr: eni.subnetCIDR ?? '',
    isServing: eni.state !== 'Detaching' && eni.draining !== true,
    isChanging: eni.state !== 'Attached',
    ips: first.map(({ ip }) => ip),
    claims: [...new Set(marks.flatMap((mark) => (mark === undefined ? [] : [`${mark.namespace}/${mark.name}`])))],
    plain: isShared ? plain + askedFor(status, eni, ({ claim }) => claim === undefined) : 0,
    asked: isShared ? askedFor(status, eni) : 0,
  };
}

/** Trims a VpcIPClaim; undefined for the record of a Pod whose address is not kept. Pure. */
export function readClaim(object: Shape): ClaimFacts | undefined {
  const metadata = recordOf(object['metadata']);
  if (recordOf(metadata['labels'])[RECORD_LABEL] !== undefined) return undefined;
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const reservedFor = textOf(spec['nodeName']);
  const sinceMs = Date.parse(textOf(recordOf(metadata['annotations'])[RESERVED_AT_ANNOTATION]));
  const nominatedSubnetIds = textsOf(spec['nominatedSubnetIDs']);
  return {
    key: `${textOf(metadata['namespace'])}/${textOf(metadata['name'])}`,
    uid: textOf(metadata['uid']),
    mode: spec['mode'] === 'direct-eni' ? 'direct-eni' : 'route-eni',
    ips: textsOf(status['ips']),
    nodeName: textOf(status['nodeName']),
    ...(typeof spec['nominatedIP'] === 'string' ? { nominatedIp: spec['nominatedIP'] } : {}),
    ...(nominatedSubnetIds.length > 0 ? { nominatedSubnetIds } : {}),
    ...(reservedFor === '' ? {} : { reserved: { nodeName: reservedFor, sinceMs } }),
  };
}

/** Trims a VpcIP; undefined when it is held for no claim. Pure. */
export function readVip(object: Shape): VipFacts | undefined {
  const metadata = recordOf(object['metadata']);
  const spec = recordOf(object['spec']);
  const claim = recordOf(spec['claimRef']);
  if (recordOf(metadata['labels'])[RECORD_LABEL] !== undefined || textOf(claim['name']) === '') return undefined;
  return {
    ip: textOf(spec['ip']),
    claimKey: `${textOf(claim['namespace'])}/${textOf(claim['name'])}`,
    subnetId: textOf(spec['subnetID']),
  };
}

function some<K extends string>(key: K, value: number | undefined): { readonly [P in K]?: number } {
  // Either nothing, or exactly the one key.
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: number };
}

function recordOf(value: unknown): Shape {
  return isRecord(value) ? value : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Shared ENIs may leave fewer places than the limit. */
function mostDirectEnis(limit: number | undefined, status: NodeEniConfigStatus): number | undefined {
  const { allocatableDirectENIs: left } = status;
  return limit === undefined || left === undefined ? limit : Math.min(limit, left);
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
