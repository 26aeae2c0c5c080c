import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from './decision.ts';
import { isDirectCreation } from './direct-creation.ts';
import type { NodeView } from './node-view.ts';
import { staticPlacesOf } from './unmet-wishes.ts';
import { ipv4CountOf, isShared, pooledIpv4Of } from './with-enis.ts';

/** What a node has, gets and wants, in IPv4 addresses for Pods; kept ones are none of them but where it is said. */
export type Supply = {
  /** On ENIs that serve new Pods. */
  readonly have: number;
  /** On ENIs that are being attached, and asked for; what is stuck is not counted on. */
  readonly coming: number;
  /** What the node asks for, or the floor. */
  readonly demand: number;
  /** Places that kept addresses have, or are about to have. */
  readonly kept: number;
  /** The demand within the limits, less the places of kept addresses; 0 for a node that leaves. */
  readonly want: number;
  /** Most addresses of one ENI, and most shared ENIs. */
  readonly perEni: number;
  readonly mostEnis: number;
};

/** Spare addresses that a node keeps when nobody says otherwise. */
const WARM_TARGET = 5;

/** Counts a node's supply and demand. Pure. */
export function supplyOf(view: NodeView, status: NodeEniConfigStatus): Supply {
  const perEni = mostIpsPerEni(view);
  const mostEnis = mostSharedEnis(view, status);
  const enis = status.eniInfos ?? [];
  const serving = enis.filter((eni) => eni.state === 'Attached' && isUsable(eni));
  const attaching = enis.filter((eni) => eni.state === 'Attaching' && isUsable(eni) && !view.stuck.has(eni.eniID));
  const kept = staticPlacesOf(view, status);
  const demand = Math.max(view.spec.desiredRouteENIIP ?? view.initialDemand, view.floor);
  return {
    have: sumOf(serving, (eni) => pooledIpv4Of(eni).length),
    coming: sumOf(attaching, (eni) => pooledIpv4Of(eni).length) + sumOf(status.intents ?? [], comingOf(view, status)),
    demand,
    kept,
    want: view.leaving === 'no' ? Math.max(0, Math.min(demand, perEni * mostEnis - kept)) : 0,
    perEni,
    mostEnis,
  };
}

/** Tells whether the node's Pods, and not its pool alone, are short of addresses. Pure. */
export function isShortForPods(view: NodeView, supply: Supply): boolean {
  const warm = view.warmTarget ?? view.spec.routeENIIPMinWarmTarget ?? WARM_TARGET;
  return supply.have < supply.want - warm;
}

/** Tells whether the limits keep from Pods, and not from the pool alone, what they need. Pure. */
export function isCappedForPods(view: NodeView, supply: Supply): boolean {
  const warm = view.warmTarget ?? view.spec.routeENIIPMinWarmTarget ?? WARM_TARGET;
  return view.leaving === 'no' && supply.want < supply.demand - warm;
}

/** Tells whether new addresses may go on the ENI. */
export function isUsable(eni: NodeEniInfo): boolean {
  return isShared(eni) && eni.draining !== true;
}

/** Lists creations whose ENI is not in the status yet. */
export function unseenCreations(status: NodeEniConfigStatus): readonly Intent[] {
  const known = new Set((status.eniInfos ?? []).map((eni) => eni.eniID));
  return (status.intents ?? []).filter(
    (intent) => intent.action === 'CreateNetworkInterface' && !known.has(intent.eniID ?? ''),
  );
}

/** Counts the room that an ENI has left once what is asked for has come. */
export function roomOf(eni: NodeEniInfo, status: NodeEniConfigStatus, perEni: number): number {
  const asked = sumOf(status.intents ?? [], (intent) => {
    if (intent.action === 'MigratePrivateIpAddress')
      return intent.targetENIID === eni.eniID ? (intent.ips ?? []).length : 0;
    const isFor = intent.eniID === eni.eniID;
    const isNew = intent.action === 'AssignPrivateIpAddresses' || isUnfilledCreation(intent, eni);
    return isFor && isNew ? askedOf(intent) : 0;
  });
  return Math.max(0, perEni - ipv4CountOf(eni) - asked);
}

/** Counts the addresses that a call asks for: so many, or these very ones. */
export function askedOf({ action, ipCount, ips = [] }: Intent): number {
  return ipCount ?? (action === 'AssignPrivateIpAddresses' ? ips.length : 0);
}

/** Adds up what `count` says of each item. */
export function sumOf<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((sum, item) => sum + count(item), 0);
}

function mostIpsPerEni({ maxIPPerENI, instance }: NodeView): number {
  return Math.min(maxIPPerENI ?? Number.MAX_SAFE_INTEGER, instance?.secondaryIpsPerEni ?? MOST_IPS_PER_ENI);
}

/** Exclusive ENIs take places on the instance too. */
function mostSharedEnis({ maxRouteENI, instance }: NodeView, status: NodeEniConfigStatus): number {
  const coming = unseenCreations(status).filter(isDirectCreation).length;
  const exclusive = (status.eniInfos ?? []).filter((eni) => !isShared(eni)).length + coming;
  const places = instance === undefined ? MOST_ENIS : Math.max(0, instance.secondaryEnis - exclusive);
  return Math.min(maxRouteENI ?? Number.MAX_SAFE_INTEGER, places);
}

/** The bounds of the NodeENIConfig's schema: what limits a node whose instance is not known. */
const MOST_ENIS = 64;
const MOST_IPS_PER_ENI = 4096;

function comingOf(view: NodeView, status: NodeEniConfigStatus): (intent: Intent) => number {
  const enis = new Map((status.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  return (intent) => {
    if (intent.claim !== undefined) return 0;
    const eni = enis.get(intent.eniID ?? '');
    if (view.stuck.has(intent.id) || view.stuck.has(intent.eniID ?? '')) return 0;
    if (intent.action === 'CreateNetworkInterface') {
      return eni === undefined || isUnfilledCreation(intent, eni) ? (intent.ipCount ?? 0) : 0;
    }
    const isComing = intent.action === 'AssignPrivateIpAddresses' && eni !== undefined && isUsable(eni);
    return isComing && eni.state !== 'Detaching' ? (intent.ipCount ?? 0) : 0;
  };
}

/** The entry of an ENI that is still being made has none of the addresses that it is born with. */
function isUnfilledCreation(intent: Intent, eni: NodeEniInfo): boolean {
  return intent.action === 'CreateNetworkInterface' && ipv4CountOf(eni) === 0;
}
