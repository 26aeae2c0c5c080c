import { IPS_PER_CALL } from '../../cloud/batches.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from './claim-marks.ts';
import { freeSlotsOf, isCappedForPods, isShortForPods, isUsable, sumOf } from './count-slots.ts';
import { isRequestedHere } from './decide-exclusive-marks.ts';
import type { Answer, ClaimWait } from './decision.ts';
import {
  blocksIn,
  CALL_IN_FLIGHT,
  checkBreakers,
  type DecisionContext,
  planInTurn,
  slotsOf,
} from './decision-context.ts';
import { type EniKind, isOfKind, isOnExtension, KINDS } from './eni-kinds.ts';
import type { NodeView } from './node-view.ts';
import { enisOf } from './open-requests.ts';
import {
  blockedByInstance,
  blockedByPlaces,
  blockedBySubnets,
  planCreation,
  whyFull,
  whyNoMoreSlots,
} from './plan-creation.ts';
import { planExclusiveClaims } from './plan-exclusive-claims.ts';
import { planGroupsOfClaims } from './plan-groups.ts';
import { isReservedEni } from './reserved-subnets.ts';
import { ipv4CountOf, withEni, withPlace } from './with-enis.ts';

/** One way to meet wants of a kind: an answer for each want that it concerns. */
type Option = (context: DecisionContext, kind: EniKind) => readonly Answer[];

/**
 * The ways to more slots, the cheapest first. Shared ENIs have no claims of their own: their addresses have, and those
 * are planned apart.
 */
const OPTIONS: readonly Option[] = [planGroupsOfClaims, attach, planExclusiveClaims, assign, create];

/** Plans the next call that brings a node closer to what is wanted of a kind of ENI. */
export function planWants(context: DecisionContext, kind: EniKind): readonly Answer[] {
  return planInTurn(OPTIONS.map((option) => () => option(context, kind)));
}

/** Returns why claims whose Pods are on the node wait: by key. */
export function claimWaitsOf(view: NodeView, answers: readonly Answer[]): ReadonlyMap<string, ClaimWait> {
  const isFull = !mayFreePlace(view);
  return new Map(
    blocksIn(answers).flatMap(({ claim, message, reason }) => {
      const isNodeFull = reason === 'NodeFull' || (reason === 'DirectENILimit' && isFull);
      return claim === undefined ? [] : [[claim, { message, isNodeFull }] as const];
    }),
  );
}

/** Reports whether an ENI leaves its place without a Pod or a claim being deleted: a spare one, or one that goes anyway. */
function mayFreePlace({ status, inUse }: NodeView): boolean {
  return (status.eniInfos ?? []).some((eni) => {
    const { state, draining, claim, primaryIP = '' } = eni;
    const isSpare = !isOfKind(KINDS.shared, eni) && claim === undefined && inUse?.has(primaryIP) !== true;
    return isSpare || state === 'Detaching' || draining === true;
  });
}

/** Attaches ENIs that are on no instance: those that Pods wait for, then those of the pool that are still needed. */
function attach(context: DecisionContext, kind: EniKind): readonly Answer[] {
  const { view, status, busy } = context;
  if (view.leaving !== 'no') return [];
  const { want, have } = slotsOf(context, kind);
  const due = enisOf(kind, status).filter(
    ({ eniID, state, draining }) =>
      state === 'Attaching' && draining !== true && !busy.has(eniID) && !view.stuck.has(eniID),
  );
  const ofClaims = due.filter((eni) => isRequestedHere(view, eni));
  const ofPool = due.filter((eni) => eni.claim === undefined);
  // A shared ENI may be there for the static address of a claim, whatever the pool needs.
  const needed = kind.isShared ? ofPool : ofPool.slice(0, Math.max(0, want - have));
  return [...ofClaims, ...needed].map((eni) => attachEni(context, kind, eni));
}

function attachEni(context: DecisionContext, kind: EniKind, eni: NodeEniInfo): Answer {
  const { view } = context;
  const { eniID, claim } = eni;
  const key = claim === undefined ? {} : { claim: claimKeyOf(claim) };
  const blocked =
    blockedByInstance(view) ??
    (context.isInstanceBusy ? CALL_IN_FLIGHT : blockedByPlaces(view, kind)) ??
    checkBreakers(view, [`call/AttachNetworkInterface/${eniID}`], 'CloudRefused', `cannot attach ${eniID}`);
  if (blocked !== undefined) return { ...blocked, ...key };
  return {
    kind: 'call',
    action: 'AttachNetworkInterface',
    fields: { eniID, instanceID: view.instance?.instanceId ?? '', ...key },
    priority: claim !== undefined || isShortForPods(slotsOf(context, kind)) ? 'pod' : 'warm',
    change: (status) => withEni(status, eniID, () => withPlace(eni, isOnExtension(kind, view))),
  };
}

/** Assigns addresses to an ENI that has free slots. */
function assign(context: DecisionContext, kind: EniKind): readonly Answer[] {
  const { view } = context;
  const need = missingOf(context, kind);
  const free = need > 0 ? chooseEni(context, kind) : undefined;
  if (free === undefined) return [];
  const { eni, freeSlots } = free;
  const freeIps = view.subnets.find((subnet) => subnet.subnetId === eni.subnetID)?.freeIps ?? freeSlots;
  const ipCount = Math.min(IPS_PER_CALL, need, freeSlots, freeIps);
  const priority = isShortForPods(slotsOf(context, kind)) ? 'pod' : 'warm';
  return [{ kind: 'call', action: 'AssignPrivateIpAddresses', fields: { eniID: eni.eniID, ipCount }, priority }];
}

/** Creates an ENI for the pool; a shared one with as many addresses as one call can bring. */
function create(context: DecisionContext, kind: EniKind): readonly Answer[] {
  const { view } = context;
  const slots = slotsOf(context, kind);
  const need = missingOf(context, kind);
  if (need <= 0) return isCappedForPods(view, slots) ? [whyNoMoreSlots(kind, slots)] : [];
  const later = freeSlotsLater(context, kind);
  if (need <= later) return [CALL_IN_FLIGHT];
  return [
    planCreation(context, kind, {
      // An ENI that comes or goes may change whether the node is full.
      full: () => (context.isInstanceBusy ? CALL_IN_FLIGHT : whyFull(context, kind)),
      subnets: view.subnets,
      noSubnet: () => blockedBySubnets(context),
      ...(kind.isShared
        ? { ipCountIn: ({ freeIps }) => Math.min(IPS_PER_CALL, need - later, slots.perEni, freeIps - 1) }
        : {}),
      securityGroups: view.securityGroups,
      priority: isShortForPods(slots) ? 'pod' : 'warm',
    }),
  ];
}

function missingOf(context: DecisionContext, kind: EniKind): number {
  const { want, have, coming } = slotsOf(context, kind);
  return want - have - coming;
}

/** An ENI that new addresses can be assigned to, and how many more it can have. */
type EniCapacity = { readonly eni: NodeEniInfo; readonly freeSlots: number };

/** Selects the ENI for new addresses: the fullest one that has free capacity and no call in flight. */
function chooseEni(context: DecisionContext, kind: EniKind): EniCapacity | undefined {
  return eniCapacitiesOf(context, kind)
    .filter(({ eni }) => eni.state === 'Attached' && !context.busy.has(eni.eniID))
    .reduce<EniCapacity | undefined>(
      (best, one) => (best !== undefined && ipv4CountOf(best.eni) >= ipv4CountOf(one.eni) ? best : one),
      undefined,
    );
}

/** Counts the free capacity on ENIs that cannot get addresses now but can soon. */
function freeSlotsLater(context: DecisionContext, kind: EniKind): number {
  const isSoon = ({ eni }: EniCapacity) =>
    (eni.state === 'Attaching' || context.busy.has(eni.eniID)) && !context.view.stuck.has(eni.eniID);
  return sumOf(eniCapacitiesOf(context, kind).filter(isSoon), ({ freeSlots }) => freeSlots);
}

function eniCapacitiesOf(context: DecisionContext, kind: EniKind): readonly EniCapacity[] {
  if (!kind.isShared) return [];
  const { view, status, claims } = context;
  const { perEni } = slotsOf(context, kind);
  const full = new Set(
    view.subnets.filter((subnet) => subnet.isBlocked || subnet.freeIps < 1).map((one) => one.subnetId),
  );
  return (status.eniInfos ?? []).flatMap((eni) => {
    const { eniID, subnetID = '' } = eni;
    const keys = [`eni-ips/${eniID}`, `subnet/${subnetID}`, `call/AssignPrivateIpAddresses/${eniID}`];
    const isOurs = isUsable(eni) && !isReservedEni(view, eni);
    const isOpen = isOurs && eni.state !== 'Detaching' && !keys.some((key) => view.blocked.has(key));
    const freeSlots =
      isOpen && !full.has(subnetID) ? freeSlotsOf(eni, status, perEni) - (claims.reserved.get(eniID) ?? 0) : 0;
    return freeSlots > 0 ? [{ eni, freeSlots }] : [];
  });
}
