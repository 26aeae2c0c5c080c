import { countEniPlaces, type EniPlaces, freeSharedEnis, maxSharedEnis } from '../../crd/eni-places.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { pendingCreationsOf } from '../../crd/subnet-supply.ts';
import type { Intent } from './decision.ts';
import { type EniKind, isCreationOf, isOfKind, isOnExtension, KINDS } from './eni-kinds.ts';
import type { NodeView } from './node-view.ts';
import { countStaticIps, openEniRequests } from './open-requests.ts';
import { ipv4CountOf, isShared, pooledIpv4Of } from './with-enis.ts';

/**
 * What a node has of one kind of ENI, gets and needs. A slot is an IPv4 address of a shared ENI, or a whole exclusive ENI. The
 * pool and claims are counted apart.
 */
export type Slots = Limits & {
  /** Of the pool, on ENIs that serve new Pods. */
  readonly have: number;
  /** Of the pool, on ENIs that are being attached, and requested ones; stuck ones are not counted. */
  readonly coming: number;
  /** Demand of the node for its pool. */
  readonly demand: number;
  /** Those of the demand that are spare: Pods wait only when more than these are missing. */
  readonly warm: number;
  /** The demand within the limits, minus the slots of claims; 0 for a node that is torn down. */
  readonly want: number;
};

/** What limits the slots of a kind. */
type Limits = {
  /** Limit of slots on one ENI, and limit of ENIs: of exclusive ones beside the node's shared ones. */
  readonly perEni: number;
  readonly maxEnis: number;
  /** New ENIs that fit now; not below 0. */
  readonly freeEnis: number;
  /** Slots that claims use, and that they will use. */
  readonly claimed: number;
  /** Those of them that are requested here and that the node has nothing for yet; counted of exclusive ENIs alone. */
  readonly awaited: number;
};

/** Counts what a node has of a kind of ENI, gets and needs. */
export function countSlots(kind: EniKind, view: NodeView, status: NodeEniConfigStatus): Slots {
  const pool = (status.eniInfos ?? []).filter((eni) => isOfKind(kind, eni) && eni.draining !== true);
  const attaching = pool.filter((eni) => eni.state === 'Attaching' && !view.stuck.has(eni.eniID));
  const slotsOn = (eni: NodeEniInfo) => (kind.isShared ? pooledIpv4Of(eni).length : Number(eni.claim === undefined));
  const attached = pool.filter((eni) => eni.state === 'Attached');
  const limits = kind.isShared ? limitsOfShared(view, status) : limitsOfExclusive(kind, view, status);
  const demand = kind.demandOf(view);
  const most = limits.perEni * limits.maxEnis - limits.claimed;
  return {
    ...limits,
    have: sumOf(attached, slotsOn),
    coming: sumOf(attaching, slotsOn) + sumOf(status.intents ?? [], requestedBy(kind, view, status)),
    demand,
    warm: kind.warmTargetOf(view),
    want: view.leaving === 'no' ? Math.max(0, Math.min(demand, most)) : 0,
  };
}

/** Reports whether Pods wait for slots, and not only the pool is below its warm target. */
export function isShortForPods({ have, want, warm }: Slots): boolean {
  return have < want - warm;
}

/** Reports whether the limits deny slots to Pods, and not only to the pool. */
export function isCappedForPods({ leaving }: NodeView, { want, demand, warm }: Slots): boolean {
  return leaving === 'no' && want < demand - warm;
}

/** Counts how the ENIs of a node use the places of its instance. */
export function eniPlacesOf(view: NodeView, status: NodeEniConfigStatus): EniPlaces {
  const { secondaryEnis: standard, extensionEnis: extension = 0 } = view.instance ?? {};
  return countEniPlaces(status, { maxShared: KINDS.shared.maxEnisOf(view), standard, extension });
}

/** Reports whether new addresses may be assigned to the ENI. */
export function isUsable(eni: NodeEniInfo): boolean {
  return isShared(eni) && eni.draining !== true;
}

/** Counts the free address slots of an ENI, after everything that is requested for it has come. */
export function freeSlotsOf(eni: NodeEniInfo, status: NodeEniConfigStatus, perEni: number): number {
  const requested = sumOf(status.intents ?? [], (intent) => {
    if (intent.action === 'MigratePrivateIpAddress')
      return intent.targetENIID === eni.eniID ? (intent.ips ?? []).length : 0;
    const isFor = intent.eniID === eni.eniID;
    const isNew = intent.action === 'AssignPrivateIpAddresses' || isUnfilledCreation(intent, eni);
    return isFor && isNew ? requestedIpCount(intent) : 0;
  });
  return Math.max(0, perEni - ipv4CountOf(eni) - requested);
}

/** Counts the addresses that a call requests: a number, or particular ones. */
export function requestedIpCount({ action, ipCount, ips = [] }: Intent): number {
  return ipCount ?? (action === 'AssignPrivateIpAddresses' ? ips.length : 0);
}

/** Returns the sum of `count` over the items. */
export function sumOf<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((sum, item) => sum + count(item), 0);
}

/** Maximum of the NodeENIConfig's schema: it limits a node whose instance is unknown. */
const MAX_IPS_PER_ENI = 4096;

function limitsOfShared(view: NodeView, status: NodeEniConfigStatus): Limits {
  const { maxIPPerENI = Number.MAX_SAFE_INTEGER, instance } = view;
  const places = eniPlacesOf(view, status);
  return {
    perEni: Math.min(maxIPPerENI, instance?.secondaryIpsPerEni ?? MAX_IPS_PER_ENI),
    maxEnis: maxSharedEnis(places),
    freeEnis: instance === undefined ? 0 : freeSharedEnis(places),
    claimed: countStaticIps(view, status),
    awaited: 0,
  };
}

/** Maximum of entries in `status.eniInfos`, of the schema. */
const MAX_ENTRIES = 64;

function limitsOfExclusive(kind: EniKind, view: NodeView, status: NodeEniConfigStatus): Limits {
  const enis = (status.eniInfos ?? []).filter((eni) => isOfKind(kind, eni) && usesPlace(eni));
  const creations = pendingCreationsOf(status).filter((intent) => isCreationOf(kind, intent));
  const used = enis.length + creations.length;
  const ofClaims = [...enis, ...creations].filter(({ claim }) => claim !== undefined).length;
  const awaited = view.leaving === 'no' ? openEniRequests(kind, view, status).length : 0;
  const places = eniPlacesOf(view, status);
  const { standard = 0, extension, onExtension, entries } = places;
  const onStandard = used - onExtension;
  // New ones come to standard places only where there are no others.
  const [capacity, free] = isOnExtension(kind, view)
    ? [extension + onStandard, extension - onExtension]
    : [standard - (places.used - onStandard), standard - places.used];
  const maxEnis = Math.max(0, Math.min(kind.maxEnisOf(view) ?? 0, capacity));
  const freeEnis = Math.max(0, Math.min(maxEnis - used, free, MAX_ENTRIES - entries));
  return { perEni: 1, maxEnis, freeEnis, claimed: ofClaims + awaited, awaited };
}

/** Reports whether an ENI uses a place of the instance. A detached one does not, though its entry still exists. */
function usesPlace(eni: NodeEniInfo): boolean {
  return eni.state !== 'Detaching' || eni.deviceIndex !== undefined;
}

/** Returns how many slots of the pool a call on record brings, beside those that the ENI's entry shows already. */
function requestedBy(kind: EniKind, view: NodeView, status: NodeEniConfigStatus): (intent: Intent) => number {
  const enis = new Map((status.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  return (intent) => {
    const { id, eniID = '', action, claim, ipCount = 0 } = intent;
    if (claim !== undefined || view.stuck.has(id) || view.stuck.has(eniID)) return 0;
    const eni = enis.get(eniID);
    if (isCreationOf(kind, intent)) {
      if (!kind.isShared) return eni === undefined ? 1 : 0;
      return eni === undefined || isUnfilledCreation(intent, eni) ? ipCount : 0;
    }
    const isComing = kind.isShared && action === 'AssignPrivateIpAddresses' && eni !== undefined && isUsable(eni);
    return isComing && eni.state !== 'Detaching' ? ipCount : 0;
  };
}

/** Reports whether the entry is of an ENI that is still being created: its first addresses are not in the entry yet. */
function isUnfilledCreation(intent: Intent, eni: NodeEniInfo): boolean {
  return intent.action === 'CreateNetworkInterface' && ipv4CountOf(eni) === 0;
}
