import type { EniFacts } from '../index/facts.ts';
import type { NodeRoom, Room } from '../index/node-room.ts';
import type { PodDemand } from '../index/pod-demand.ts';
import type { Reservation } from '../index/reservation.ts';
import type { NodeView } from '../index/scheduler-index.ts';
import { subnetRefusal } from './decide-subnets.ts';
import { type FitQuestion, isHolding, type NominatedSubnet, type Refusal, subnetsOf } from './fit-question.ts';

/**
 * Decides whether a node fits a Pod: undefined when it does, else the reason. The answer holds only for this moment.
 */
export function decideFit(question: FitQuestion, view: NodeView | undefined): Refusal | undefined {
  const { demand } = question;
  const isRoomy = question.isPlain && view !== undefined && view.routeFree >= demand.routeIps;
  if (isRoomy && (question.ledger === undefined || hasSpare(view, demand.routeIps))) return undefined;
  if (view?.node?.isSuper === true) return undefined;
  if (view?.nec === undefined || view.room === undefined) return NO_NEC;
  return (
    placeRefusal(question, view) ??
    routeRefusal(question, view, view.room) ??
    subnetRefusal(question, view, isAtWork(view)) ??
    directRefusal(demand, question.promise, view, view.room) ??
    eipRefusal(demand, question.promise, view, view.room)
  );
}

function hasSpare({ supply }: NodeView, need: number): boolean {
  return supply === undefined || supply.spare >= need;
}

const NO_NEC: Refusal = {
  reason: 'NoNodeENIConfig (no VPC-CNI node, or tke-eni-ipamd has not seen it yet)',
  isUnresolvable: false,
  isPassing: false,
};

/** Checks the location of the node (zone, subnets), without regard to the Pods on it. */
function placeRefusal(question: FitQuestion, view: NodeView): Refusal | undefined {
  const { demand, kept, nominated } = question;
  const { nec } = view;
  if (nec === undefined || !demand.isStatic) return nominatedRefusal(nominated, view);
  if (!nec.isStatic) return forGood('StaticIPDisabled (enableStaticIP of its NodeENIConfig is not true)');
  if (isHolding(question, view)) return undefined;
  if (kept?.ip === undefined) return nominatedRefusal(nominated, view);
  const { ip, subnetId, zone } = kept;
  const known = question.ofZones.get(nec.zone);
  if (known !== undefined) return known;
  const named = (): string => `kept address ${ip} is of ${subnetId ?? 'a subnet that no ENI is in'}`;
  if (zone !== undefined && nec.zone !== '' && zone !== nec.zone) {
    const refusal = forGood(`${named()} in zone ${zone}, node is in ${nec.zone}`);
    question.ofZones.set(nec.zone, refusal);
    return refusal;
  }
  if (subnetId !== undefined && !isReachable(view, [subnetId])) {
    return forGood(`${named()}, ENIs of the node are of ${nec.subnetIds.join(', ')}`);
  }
  return undefined;
}

function nominatedRefusal(nominated: readonly NominatedSubnet[] | undefined, view: NodeView): Refusal | undefined {
  const { nec } = view;
  if (nominated === undefined || nec === undefined) return undefined;
  const inZone = nominated.filter(({ zone }) => zone === undefined || nec.zone === '' || zone === nec.zone);
  const named = `nominated ${nominated.map(({ subnetId }) => subnetId).join(', ')}`;
  if (inZone.length === 0) {
    const zones = [...new Set(nominated.map(({ zone }) => zone))].join(', ');
    return forGood(`${named} in zone ${zones}, node is in ${nec.zone}`);
  }
  const ids = inZone.map(({ subnetId }) => subnetId);
  return isReachable(view, ids) ? undefined : forGood(`${named}, ENIs of the node are of ${nec.subnetIds.join(', ')}`);
}

/** Tells whether a node can have an ENI in one of the subnets: it has one there, or its new ENIs may be made there. */
function isReachable({ nec }: NodeView, subnetIds: readonly string[]): boolean {
  if (nec === undefined || nec.subnetIds.length === 0) return true;
  return subnetIds.some((id) => nec.subnetIds.includes(id) || nec.enis.some((eni) => eni.subnetId === id));
}

function routeRefusal(question: FitQuestion, view: NodeView, room: NodeRoom): Refusal | undefined {
  const { demand, kept, nominated, promise } = question;
  const need = demand.isStatic ? Math.min(1, demand.routeIps) : demand.routeIps;
  if (need === 0) return undefined;
  if (view.routeFree < need) {
    const own = ownOf(demand, promise, view, room.route, need);
    const short = shortage('InsufficientIPorENI', '', need, room.route, own);
    if (short !== undefined) return { reason: short, isUnresolvable: false, isPassing: isAtWork(view) };
  }
  if (isHolding(question, view)) return undefined;
  const wanted = subnetsOf(demand, kept, nominated);
  if (wanted === undefined) return undefined;
  const { enis, mostEnis } = room;
  if (mostEnis === undefined || enis < mostEnis) return undefined;
  if (view.eniRooms.some(({ subnetId, left }) => left > 0 && wanted.includes(subnetId))) return undefined;
  const reason = `ENILimitExceed (${enis} of ${mostEnis} ENIs, none of ${wanted.join(', ')} with room)`;
  return { reason, isUnresolvable: false, isPassing: isAtWork(view) };
}

function directRefusal(
  demand: PodDemand,
  promise: Reservation | undefined,
  view: NodeView,
  room: NodeRoom,
): Refusal | undefined {
  if (demand.directEnis === 0) return undefined;
  const need = demand.isStatic ? 1 : demand.directEnis;
  const own = ownOf(demand, promise, view, room.direct, need);
  const short = shortage('ENILimitExceed', ' exclusive ENIs', need, room.direct, own);
  return short === undefined ? undefined : { reason: short, isUnresolvable: false, isPassing: false };
}

function eipRefusal(
  demand: PodDemand,
  promise: Reservation | undefined,
  view: NodeView,
  room: NodeRoom,
): Refusal | undefined {
  if (demand.eips === 0) return undefined;
  const own = promise?.nodeName === view.name ? promise.demand.eips : 0;
  const short = shortage('InsufficientEIP', '', demand.eips, room.eip, own);
  return short === undefined ? undefined : { reason: short, isUnresolvable: false, isPassing: false };
}

/**
 * Counts how much of the used capacity belongs to this very Pod: by a reservation, or by its static address that is
 * already on the node.
 */
function ownOf(
  demand: PodDemand,
  promise: Reservation | undefined,
  view: NodeView,
  { keys }: Room,
  places: number,
): number {
  if (demand.isStatic) return keys.has(demand.key) ? 1 : 0;
  return promise?.nodeName === view.name ? places : 0;
}

function shortage(
  word: string,
  unit: string,
  need: number,
  { most, taken }: Pick<Room, 'most' | 'taken'>,
  own: number,
): string | undefined {
  if (most === undefined) return undefined;
  const free = most - (taken - own);
  return free >= need ? undefined : `${word} (need ${need}, free ${Math.max(0, free)} of ${most}${unit})`;
}

function isAtWork({ nec }: NodeView): boolean {
  return nec?.isBinding === true || nec?.enis.some(isComing) === true;
}

function isComing({ isShared, isChanging }: EniFacts): boolean {
  return isShared && isChanging;
}

function forGood(reason: string): Refusal {
  return { reason, isUnresolvable: true, isPassing: false };
}
