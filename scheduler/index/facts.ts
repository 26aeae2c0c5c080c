import { countEniPlaces, type EniPlaces, isExclusiveCreation } from '../../crd/eni-places.ts';
import { isSuperNode } from '../../crd/foreign-names.ts';
import { NODE_SUBNETS_LABEL, RECORD_LABEL, RESERVED_AT_ANNOTATION } from '../../crd/names.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { nodeLimitsOf } from '../../crd/node-limits.ts';
import { readNodeEniConfig } from '../../crd/read-node-eni-config.ts';
import {
  countRequested,
  countSubnetUsage,
  pendingCreationsOf,
  readSubnetSupply,
  type SubnetSupply,
  type SubnetUsage,
} from '../../crd/subnet-supply.ts';
import { type JsonObject, recordOf, textOf, textsOf } from '../../runtime/json.ts';
import type { SharedTexts } from './pod-request.ts';

/** The fields of a Node that the index keeps. */
export type NodeTraits = {
  readonly name: string;
  /** A super node has neither an instance nor ENIs: its Pods get addresses in another way. */
  readonly isSuper: boolean;
  /** The subnets that the Node's label names for new ENIs; empty: the label names none. */
  readonly subnetIds: readonly string[];
};

/** One ENI of a node, with what the capacity counts need. */
export type EniFacts = {
  readonly eniId: string;
  readonly isShared: boolean;
  readonly subnetId: string;
  readonly cidr: string;
  /** True when the ENI serves new Pods now. */
  readonly isServing: boolean;
  /**
   * True while the ENI is being attached or detached. It counts against the ENI limit of the instance during that time.
   */
  readonly isChanging: boolean;
  /** IPv4 addresses for Pods; for an ENI without any, its IPv6 addresses. */
  readonly ips: readonly string[];
  /** Keys of the claims with a static address on the ENI, or with the whole ENI. */
  readonly claims: readonly string[];
  /**
   * Addresses for Pods without a static address: those that are assigned plus those that are requested from the cloud.
   */
  readonly plain: number;
  /** Addresses that are requested from the cloud, static ones too. They reduce the free capacity of the ENI. */
  readonly requested: number;
};

/** A shared ENI whose creation is requested. */
type PendingEni = {
  readonly subnetId: string;
  /** Its first addresses, and those of them that are for Pods without a static address. */
  readonly ips: number;
  readonly plain: number;
};

/** The fields of a NodeENIConfig that the index keeps. A limit that is absent is not known. */
export type NecFacts = {
  readonly name: string;
  readonly zone: string;
  /** True when Pods of the node may have static addresses. */
  readonly isStatic: boolean;
  readonly maxEnis?: number;
  /** How its ENIs use the places of the instance. */
  readonly places: EniPlaces;
  readonly ipsPerEni?: number;
  readonly allocatable?: number;
  readonly staticIps: number;
  /** Where shared ENIs leave fewer places than the limit, those. */
  readonly maxExclusiveEnis: number;
  readonly maxEips?: number;
  /** The only subnets for new ENIs; empty: the subnets of the cluster. */
  readonly subnetIds: readonly string[];
  readonly enis: readonly EniFacts[];
  /** Requested ENIs that are not among `enis` yet. */
  readonly pendingEnis: readonly PendingEni[];
  /** How many addresses the node uses of each subnet. */
  readonly subnetUsage: readonly SubnetUsage[];
  /** True while a cloud call for an ENI or for addresses is recorded and not finished. */
  readonly isBinding: boolean;
};

/** The fields of a VpcIPClaim that the index keeps. */
export type ClaimFacts = {
  /** `namespace/name`; the Pod has the same. */
  readonly key: string;
  readonly uid: string;
  readonly mode: 'route-eni' | 'direct-eni';
  /** The addresses of the claim, the cluster's first address family first. */
  readonly ips: readonly string[];
  /** The node that has the address. */
  readonly nodeName: string;
  readonly nominatedIp?: string;
  readonly nominatedSubnetIds?: readonly string[];
  /** The node of the reservation, and its start (RFC 3339). One whose start cannot be read has expired, and is absent. */
  readonly reserved?: { readonly nodeName: string; readonly since: string };
};

/** The fields of a VpcIP that belongs to a claim. */
export type VipFacts = { readonly ip: string; readonly claimKey: string; readonly subnetId: string };

/** Reads the fields of a Node that the index keeps. */
export function readNode(object: JsonObject): NodeTraits {
  const metadata = recordOf(object['metadata']);
  const labels = recordOf(metadata['labels']);
  return {
    name: textOf(metadata['name']),
    isSuper: isSuperNode(labels),
    subnetIds: textOf(labels[NODE_SUBNETS_LABEL])
      .split(/[_.]/)
      .filter((id) => id !== ''),
  };
}

const BINDING = ['CreateNetworkInterface', 'AttachNetworkInterface', 'AssignPrivateIpAddresses'];
const MIGRATION = 'MigratePrivateIpAddress';

/** Reads the fields of a NodeENIConfig that the index keeps; undefined when the object is malformed. */
export function readNec(object: JsonObject): NecFacts | undefined {
  const read = readNodeEniConfig(object);
  if (read === undefined) return undefined;
  const { spec = {}, status = {}, settings, metadata } = read.config;
  const { routeEnis, ipsPerEni, exclusiveEnis } = nodeLimitsOf(spec, settings);
  const actions = (status.intents ?? []).map(({ action }) => action);
  return {
    name: metadata.name,
    zone: status.zone ?? '',
    isStatic: spec.enableStaticIP === true,
    ...some('maxEnis', routeEnis),
    ...some('ipsPerEni', ipsPerEni),
    ...some('allocatable', status.allocatableRouteENIIPs),
    staticIps: status.staticRouteENIIPs ?? 0,
    maxExclusiveEnis: Math.min(exclusiveEnis, status.allocatableDirectENIs ?? exclusiveEnis),
    ...some('maxEips', status.maxEIPs),
    subnetIds: spec.subnetIDs ?? [],
    enis: (status.eniInfos ?? []).map((eni) => readEni(eni, status)),
    places: countEniPlaces(status, {
      maxShared: routeEnis,
      standard: status.instanceENIs,
      extension: status.extensionENIs ?? 0,
    }),
    pendingEnis: pendingEnisOf(status),
    subnetUsage: countSubnetUsage(status),
    isBinding: actions.some((action) => action === MIGRATION || BINDING.includes(action)),
  };
}

function pendingEnisOf(status: NodeEniConfigStatus): readonly PendingEni[] {
  return pendingCreationsOf(status).flatMap((intent) => {
    const { subnetID, ipCount = 0, claim } = intent;
    if (subnetID === undefined || isExclusiveCreation(intent)) return [];
    return [{ subnetId: subnetID, ips: ipCount, plain: claim === undefined ? ipCount : 0 }];
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
    plain: isShared ? plain + countRequested(status, eni, ({ claim }) => claim === undefined) : 0,
    requested: isShared ? countRequested(status, eni) : 0,
  };
}

/**
 * Reads the fields of a VpcIPClaim that the index keeps; undefined for the record of a Pod without a static address.
 */
export function readClaim(object: JsonObject, shared?: SharedTexts): ClaimFacts | undefined {
  const metadata = recordOf(object['metadata']);
  if (recordOf(metadata['labels'])[RECORD_LABEL.key] !== undefined) return undefined;
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const reservedFor = textOf(spec['nodeName']);
  const since = textOf(recordOf(metadata['annotations'])[RESERVED_AT_ANNOTATION]);
  const isReserved = reservedFor !== '' && !Number.isNaN(Date.parse(since));
  const nominatedSubnetIds = textsOf(spec['nominatedSubnetIDs']);
  return {
    key: shared?.key ?? `${textOf(metadata['namespace'])}/${textOf(metadata['name'])}`,
    uid: textOf(metadata['uid']),
    mode: spec['mode'] === 'direct-eni' ? 'direct-eni' : 'route-eni',
    ips: textsOf(status['ips']),
    nodeName: shared?.nodeNameOf(textOf(status['nodeName'])) ?? textOf(status['nodeName']),
    ...(typeof spec['nominatedIP'] === 'string' ? { nominatedIp: spec['nominatedIP'] } : {}),
    ...(nominatedSubnetIds.length > 0 ? { nominatedSubnetIds } : {}),
    ...(isReserved ? { reserved: { nodeName: reservedFor, since } } : {}),
  };
}

/** Reads the fields of a VpcIP that the index keeps; undefined when it belongs to no claim. */
export function readVip(object: JsonObject): VipFacts | undefined {
  const metadata = recordOf(object['metadata']);
  const spec = recordOf(object['spec']);
  const claim = recordOf(spec['claimRef']);
  if (recordOf(metadata['labels'])[RECORD_LABEL.key] !== undefined || textOf(claim['name']) === '') return undefined;
  return {
    ip: textOf(spec['ip']),
    claimKey: `${textOf(claim['namespace'])}/${textOf(claim['name'])}`,
    subnetId: textOf(spec['subnetID']),
  };
}

function some<K extends string>(key: K, value: number | undefined): { readonly [P in K]?: number } {
  // The object has no key, or exactly the one key.
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: number };
}

/**
 * Reads the ConfigMap in which ipamd publishes the free addresses of subnets. A subnet with a malformed text is left
 * out.
 */
export function readSubnets(object: Readonly<Record<string, unknown>>): ReadonlyMap<string, SubnetSupply> {
  const data = recordOf(object['data']);
  const read = Object.entries(data).flatMap(([id, text]) => {
    const supply = readSubnetSupply(text);
    return supply === undefined ? [] : [[id, supply] as const];
  });
  return new Map(read);
}
