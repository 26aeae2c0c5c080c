import { IPS_PER_CALL } from '../../cloud/batches.ts';
import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { pendingCreationsOf } from '../../crd/subnet-supply.ts';
import { hasTakenStaticIp } from './decide-draining.ts';
import { isHandedOver, requestOf } from './decide-exclusive-marks.ts';
import type { Answer, Blocked } from './decision.ts';
import { CALL_IN_FLIGHT, checkBreakers, type DecisionContext, planInTurn, slotsOf } from './decision-context.ts';
import { type EniKind, KINDS } from './eni-kinds.ts';
import { type Offers, offersOf } from './offers.ts';
import { enisOf, matchesEni } from './open-requests.ts';
import { type AddressPlans, planAddresses } from './plan-addresses.ts';
import { detachingEni, ipv4CountOf, isIpv4, pooledIpv4Of, releasing, withEni } from './with-enis.ts';

/**
 * Plans the next call that gives something back: whole ENIs of each kind, then addresses. What the call takes is out of use in the
 * write that records it.
 */
export function planReturns(context: DecisionContext, kinds: readonly EniKind[]): readonly Answer[] {
  const offers = offersOf({ ...context.view, status: context.status });
  const vacant = vacantEnis(context, offers);
  return planInTurn([
    ...kinds.map((kind) => () => returnEnis(context, kind, offers, vacant)),
    () => returnAddresses(context, offers, vacant),
  ]);
}

/**
 * Detaches or deletes ENIs: those that are Detaching already, then those that are not needed. A static exclusive ENI is not
 * deleted here: its VpcENI takes it over.
 */
function returnEnis(
  context: DecisionContext,
  kind: EniKind,
  offers: Offers,
  vacant: readonly NodeEniInfo[],
): readonly Answer[] {
  const ofKind = enisOf(kind, context.status);
  const detaching = ofKind.filter((eni) => eni.state === 'Detaching');
  const staying = ofKind.filter((eni) => eni.state !== 'Detaching');
  const unneeded = kind.isShared ? vacant : staying.filter((eni) => isReturnable(context, kind, offers, eni));
  return [...detaching, ...unneeded]
    .filter((eni) => !context.busy.has(eni.eniID))
    .map((eni) => {
      if (isReplacementComing(context, eni)) return CALL_IN_FLIGHT;
      return isHandedOver(eni) ? blockedByHandover(eni) : removeEni(context, eni);
    });
}

/**
 * Reports whether the ENI has to wait for its replacement: as long as it has the static address, the cloud cannot give
 * the same address to the ENI that is created instead.
 */
function isReplacementComing({ view, status, isInstanceBusy }: DecisionContext, eni: NodeEniInfo): boolean {
  if (view.leaving !== 'no' || !hasTakenStaticIp(view, eni)) return false;
  return isInstanceBusy && pendingCreationsOf(status).length > 0;
}

/** The VpcENI controller takes the ENI over and enqueues the node then; this timer is for a lost notification. */
const HANDOVER_RECHECK_MS = 5_000;

function blockedByHandover({ eniID }: NodeEniInfo): Blocked {
  const message = `ENI ${eniID} is on no instance, its VpcENI takes it over`;
  return { kind: 'blocked', reason: 'CallUnderWay', message, afterMs: HANDOVER_RECHECK_MS };
}

/** Detaches the ENI, or deletes it when it is on no instance. */
function removeEni({ view, status, isInstanceBusy }: DecisionContext, eni: NodeEniInfo): Answer {
  const { eniID } = eni;
  const { instanceID } = status;
  const isOff = eni.deviceIndex === undefined || instanceID === undefined;
  if (!isOff && isInstanceBusy) return CALL_IN_FLIGHT;
  const action = isOff ? 'DeleteNetworkInterface' : 'DetachNetworkInterface';
  const text = `cannot ${isOff ? 'delete' : 'detach'} ${eniID}`;
  const blocked = checkBreakers(view, [`call/${action}/${eniID}`], 'CloudRefused', text);
  if (blocked !== undefined) return blocked;
  const fields = { eniID, ...(isOff ? {} : { instanceID }) };
  return { kind: 'call', action, fields, priority: 'gc', change: (now) => withEni(now, eniID, detachingEni) };
}

/**
 * Lists the shared ENIs that are vacant and not needed, in the order of removal: their addresses are not unassigned one
 * by one.
 */
function vacantEnis(context: DecisionContext, offers: Offers): readonly NodeEniInfo[] {
  return enisOf(KINDS.shared, context.status)
    .filter((eni) => eni.state !== 'Detaching' && offers.isVacant(eni) && isUnneeded(context, eni))
    .filter((eni) => !context.claims.reserved.has(eni.eniID))
    .sort((one, other) => Number(isDraining(other)) - Number(isDraining(one)) || ipv4CountOf(one) - ipv4CountOf(other));
}

function isDraining(eni: NodeEniInfo): boolean {
  return eni.draining === true;
}

function isUnneeded(context: DecisionContext, eni: NodeEniInfo): boolean {
  const { view } = context;
  const { have, coming, want } = slotsOf(context, KINDS.shared);
  if (view.leaving === 'force') return true;
  if (isDraining(eni)) return true;
  if (eni.state === 'Attaching' && view.stuck.has(eni.eniID)) return true;
  // Addresses that are still coming do not make a serving ENI superfluous.
  const counted = have + (eni.state === 'Attaching' ? coming : 0);
  return counted - pooledIpv4Of(eni).length >= want;
}

/**
 * Reports whether an exclusive ENI may be given back: the agent offers it and it is not needed, or its claim ends or has its Pod
 * elsewhere.
 */
function isReturnable(context: DecisionContext, kind: EniKind, offers: Offers, eni: NodeEniInfo): boolean {
  const { view } = context;
  const { have, coming, want } = slotsOf(context, kind);
  if (offers.isHeld({ ip: eni.primaryIP ?? '', claim: eni.claim })) return false;
  if (view.leaving === 'force') return true;
  if (eni.claim !== undefined) return mayReleaseStatic(context, offers, eni);
  const isSurplus = have + coming > want;
  if (eni.state === 'Attaching') {
    // One that served before is attached again for its Pod, as when a person detached it in the console.
    const isUnused = eni.assignmentID === undefined || view.inUse?.has(eni.primaryIP ?? '') === false;
    const isGoing = isUnused && eni.deviceIndex === undefined && (isSurplus || eni.draining === true);
    return view.stuck.has(eni.eniID) || isGoing;
  }
  return offers.isEniOffered(eni) && (eni.draining === true || have > want);
}

/** Reports whether a static ENI may be detached. It stays while its Pod is here, and when its claim has no request. */
function mayReleaseStatic({ view }: DecisionContext, offers: Offers, eni: NodeEniInfo): boolean {
  const request = requestOf(view, eni);
  if (request === undefined || matchesEni(request, eni) || eni.claim?.uid !== undefined) return false;
  if (request.goal === 'keep' && view.leaving === 'no') return false;
  const isAbandoned = request.mayTakeOver === true && view.inUse?.has(eni.primaryIP ?? '') !== true;
  return eni.state === 'Attached' && (isAbandoned || offers.isEniOffered(eni));
}

/**
 * Unassigns addresses: those that are Releasing without a call, then those that are offered and not needed. They are of
 * one ENI, the emptiest first.
 */
function returnAddresses(context: DecisionContext, offers: Offers, vacant: readonly NodeEniInfo[]): readonly Answer[] {
  const { view, status } = context;
  const plans = planAddresses(view, status);
  return enisOf(KINDS.shared, status)
    .filter((eni) => eni.state === 'Attached' && !context.busy.has(eni.eniID) && !vacant.includes(eni))
    .map((eni) => ({ eni, ips: releasableIps(context, offers, plans, eni) }))
    .filter(({ ips }) => ips.length > 0)
    .sort((one, other) => ipv4CountOf(one.eni) - ipv4CountOf(other.eni))
    .map(({ eni, ips }) => unassign(context, eni, ips));
}

function unassign({ view }: DecisionContext, { eniID }: NodeEniInfo, ips: readonly string[]): Answer {
  const key = `call/UnassignPrivateIpAddresses/${eniID}`;
  const blocked = checkBreakers(view, [key], 'CloudRefused', `cannot take addresses off ${eniID}`);
  if (blocked !== undefined) return blocked;
  const withReleasing = (eni: NodeEniInfo): NodeEniInfo => ({
    ...eni,
    addresses: (eni.addresses ?? []).map((address) => (ips.includes(address.ip) ? releasing(address) : address)),
  });
  const change = (status: NodeEniConfigStatus) => withEni(status, eniID, withReleasing);
  return { kind: 'call', action: 'UnassignPrivateIpAddresses', fields: { eniID, ips }, priority: 'gc', change };
}

/**
 * Lists at most ten addresses of an ENI. Of an ENI that stays, only as many offered ones as the node has above its
 * demand.
 */
function releasableIps(
  context: DecisionContext,
  offers: Offers,
  plans: AddressPlans,
  eni: NodeEniInfo,
): readonly string[] {
  const { have, want } = slotsOf(context, KINDS.shared);
  const addresses = (eni.addresses ?? []).filter((address) => isIpv4(address.ip));
  const left = addresses.filter((address) => mustUnassign(offers, plans, address));
  const offered = addresses.filter((address) => address.claim === undefined && offers.isOffered(address));
  const surplus = eni.draining === true ? offered.length : Math.max(0, have - want);
  return [...left, ...offered.slice(0, surplus)].slice(0, IPS_PER_CALL).map((address) => address.ip);
}

/**
 * Reports whether an address is unassigned although it is not surplus: it is Releasing without a call. A static address
 * only if it leaves this node for good, or is assigned again to the Pod that is here: a released address serves again
 * only after the cloud has assigned it again, because another node may have requested it in between.
 */
function mustUnassign(offers: Offers, plans: AddressPlans, address: NodeEniAddress): boolean {
  if (plans.isBusyElsewhere(address)) return false;
  switch (plans.of(address)) {
    case 'pooled':
    case 'serves':
      return address.state === 'Releasing';
    case 'goes':
      return (
        address.state === 'Releasing' ||
        offers.isOffered(address) ||
        (plans.isTakenOver(address) && !offers.isHeld(address))
      );
    default:
      return false;
  }
}
