import { maxSharedEnis } from '../../crd/eni-places.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from './decision.ts';
import { eniPlacesOf } from './eni-slots.ts';
import type { NodeView } from './node-view.ts';
import { countStaticIps } from './unmet-ip-requests.ts';
import { ipv4CountOf, isShared, pooledIpv4Of } from './with-enis.ts';

/** Existing, pending and requested IPv4 Pod addresses of a node. Static addresses are not counted unless noted. */
export type AddressCounts = {
  /** Addresses on ENIs that serve new Pods. */
  readonly have: number;
  /** Addresses on ENIs that are being attached, and requested ones; stuck ones are not counted. */
  readonly coming: number;
  /** Demand of the node, at least the floor. */
  readonly demand: number;
  /** Address slots that static addresses use or will use. */
  readonly staticIps: number;
  /** The demand within the limits, minus the slots of static addresses; 0 for a node that is torn down. */
  readonly want: number;
  /** Limit of addresses on one ENI, and limit of shared ENIs. */
  readonly perEni: number;
  readonly maxEnis: number;
};

/** Spare addresses of a node when its spec contains no number. */
const WARM_TARGET = 5;

/** Counts the addresses that a node has, gets and needs. */
export function countAddresses(view: NodeView, status: NodeEniConfigStatus): AddressCounts {
  const perEni = maxIpsPerEni(view);
  const maxEnis = maxSharedEnis(eniPlacesOf(view, status));
  const enis = status.eniInfos ?? [];
  const serving = enis.filter((eni) => eni.state === 'Attached' && isUsable(eni));
  const attaching = enis.filter((eni) => eni.state === 'Attaching' && isUsable(eni) && !view.stuck.has(eni.eniID));
  const staticIps = countStaticIps(view, status);
  const demand = Math.max(view.spec.desiredRouteENIIP ?? view.initialDemand, view.floor);
  return {
    have: sumOf(serving, (eni) => pooledIpv4Of(eni).length),
    coming: sumOf(attaching, (eni) => pooledIpv4Of(eni).length) + sumOf(status.intents ?? [], comingOf(view, status)),
    demand,
    staticIps,
    want: view.leaving === 'no' ? Math.max(0, Math.min(demand, perEni * maxEnis - staticIps)) : 0,
    perEni,
    maxEnis,
  };
}

/** Reports whether Pods wait for addresses, and not only the pool is below its warm target. */
export function isShortForPods(view: NodeView, supply: AddressCounts): boolean {
  const warm = view.warmTarget ?? view.spec.routeENIIPMinWarmTarget ?? WARM_TARGET;
  return supply.have < supply.want - warm;
}

/** Reports whether the limits deny addresses to Pods, and not only to the pool. */
export function isCappedForPods(view: NodeView, supply: AddressCounts): boolean {
  const warm = view.warmTarget ?? view.spec.routeENIIPMinWarmTarget ?? WARM_TARGET;
  return view.leaving === 'no' && supply.want < supply.demand - warm;
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

function maxIpsPerEni({ maxIPPerENI, instance }: NodeView): number {
  return Math.min(maxIPPerENI ?? Number.MAX_SAFE_INTEGER, instance?.secondaryIpsPerEni ?? MAX_IPS_PER_ENI);
}

/** Maximum of the NodeENIConfig's schema: it limits a node whose instance is unknown. */
const MAX_IPS_PER_ENI = 4096;

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

/** Reports whether the entry is of an ENI that is still being created: its first addresses are not in the entry yet. */
function isUnfilledCreation(intent: Intent, eni: NodeEniInfo): boolean {
  return intent.action === 'CreateNetworkInterface' && ipv4CountOf(eni) === 0;
}
