import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { pendingCreationsOf } from '../../crd/subnet-supply.ts';
import { countAddresses } from './address-counts.ts';
import { beginCall, CALL_IN_FLIGHT, checkBreakers, type DecisionContext, type Step } from './decision-context.ts';
import type { NodeView } from './node-view.ts';
import { offersOf } from './offers.ts';
import { detachingEni, ipv4CountOf, isShared, pooledIpv4Of, withEni, withEnis } from './with-enis.ts';

/**
 * Decides which ENI is detached or deleted: one that is Detaching already, else a vacant one that drains or is not
 * needed. It becomes Detaching, its addresses Releasing, in the write that records the call. Takes ids.
 */
export function decideRemoval(context: DecisionContext): Step {
  const free = (context.status.eniInfos ?? []).filter((eni) => isShared(eni) && !context.busy.has(eni.eniID));
  const leaving = free.filter((eni) => eni.state === 'Detaching');
  const vacant = removableEnis(context).filter((eni) => !context.busy.has(eni.eniID));
  let firstBlocked: Step;
  for (const eni of [...leaving, ...vacant]) {
    const step = isReplacementComing(context, eni) ? CALL_IN_FLIGHT : removeEni(context, eni);
    if (step?.kind === 'begin') return step;
    firstBlocked ??= step;
  }
  return firstBlocked;
}

/**
 * Reports whether the ENI has to wait for its replacement: as long as it has the static address, the cloud cannot give
 * the same address to the ENI that is created instead.
 */
function isReplacementComing({ view, status, isInstanceBusy }: DecisionContext, eni: NodeEniInfo): boolean {
  if (view.leaving !== 'no' || !hasTakenStaticIp(view, eni)) return false;
  return isInstanceBusy && pendingCreationsOf(status).length > 0;
}

/**
 * Lists the ENIs that are vacant and not needed, in the order of removal: their addresses are not unassigned one by
 * one.
 */
export function removableEnis(context: DecisionContext): readonly NodeEniInfo[] {
  const offers = offersOf({ ...context.view, status: context.status });
  return (context.status.eniInfos ?? [])
    .filter((eni) => isShared(eni) && eni.state !== 'Detaching' && offers.isVacant(eni) && isUnneeded(context, eni))
    .filter((eni) => !context.claims.reserved.has(eni.eniID))
    .sort((one, other) => Number(isDraining(other)) - Number(isDraining(one)) || ipv4CountOf(one) - ipv4CountOf(other));
}

function isDraining(eni: NodeEniInfo): boolean {
  return eni.draining === true;
}

function isUnneeded({ view, supply }: DecisionContext, eni: NodeEniInfo): boolean {
  if (view.leaving === 'force') return true;
  if (isDraining(eni)) return true;
  if (eni.state === 'Attaching' && view.stuck.has(eni.eniID)) return true;
  // Addresses that are still coming do not make a serving ENI superfluous.
  const counted = supply.have + (eni.state === 'Attaching' ? supply.coming : 0);
  return counted - pooledIpv4Of(eni).length >= supply.want;
}

/**
 * Detaches the ENI, or deletes it when it is on no instance. It becomes Detaching in the write that records the call.
 * Takes ids.
 */
export function removeEni(context: DecisionContext, eni: NodeEniInfo): Step {
  const { eniID } = eni;
  const status = withEni(context.status, eniID, detachingEni);
  const { instanceID } = context.status;
  if (eni.deviceIndex === undefined || instanceID === undefined) {
    const blocked = checkBreakers(
      context,
      [`call/DeleteNetworkInterface/${eniID}`],
      'CloudRefused',
      `cannot delete ${eniID}`,
    );
    return blocked ?? beginCall(context, 'DeleteNetworkInterface', { eniID }, status);
  }
  if (context.isInstanceBusy) return CALL_IN_FLIGHT;
  const blocked = checkBreakers(
    context,
    [`call/DetachNetworkInterface/${eniID}`],
    'CloudRefused',
    `cannot detach ${eniID}`,
  );
  return blocked ?? beginCall(context, 'DetachNetworkInterface', { eniID, instanceID }, status);
}

/**
 * Marks ENIs that are to be removed and unmarks those that may stay. On a node that is torn down these are all ENIs.
 * Otherwise these are new ENIs that took a static address, and as many as exceed the limit: those that drain already
 * first, then the emptiest. Returns the same status when nothing changes.
 */
export function decideDraining(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const enis = status.eniInfos ?? [];
  const staying = enis.filter((eni) => isShared(eni) && eni.state !== 'Detaching');
  const surplus = view.leaving === 'no' ? staying.length - countAddresses(view, status).maxEnis : staying.length;
  const toDrain = new Set([...staying].sort(compareRemovalOrder).slice(0, Math.max(0, surplus)));
  const shouldDrain = (eni: NodeEniInfo) =>
    isShared(eni) ? toDrain.has(eni) || hasTakenStaticIp(view, eni) : view.leaving !== 'no';
  const marked = enis.map((eni) => (eni.state === 'Detaching' ? eni : withDraining(eni, shouldDrain(eni))));
  return withEnis(status, marked);
}

/**
 * Orders ENIs for removal: those that drain, those that never served, those without static addresses, those with the
 * fewest addresses.
 */
function compareRemovalOrder(one: NodeEniInfo, other: NodeEniInfo): number {
  return rankOf(one) - rankOf(other) || ipv4CountOf(one) - ipv4CountOf(other);
}

function rankOf(eni: NodeEniInfo): number {
  if (eni.draining === true) return 0;
  if ((eni.addresses ?? []).some(({ claim }) => claim !== undefined)) return 3;
  return eni.state === 'Attaching' && eni.assignmentID === undefined ? 1 : 2;
}

function withDraining(eni: NodeEniInfo, shouldDrain: boolean): NodeEniInfo {
  if (shouldDrain) return eni.draining === true ? eni : { ...eni, draining: true };
  if (eni.draining === undefined) return eni;
  const { draining: _over, ...rest } = eni;
  return rest;
}

/**
 * Reports whether a new ENI has a static address as its primary one. The address was on no ENI, so the cloud could assign
 * it to a new ENI. The ENI has to be deleted so that the address is free again. An ENI that was attached serves Pods
 * and is left unchanged.
 */
function hasTakenStaticIp({ reservedIps }: Pick<NodeView, 'reservedIps'>, eni: NodeEniInfo): boolean {
  const { primaryIP, state, assignmentID } = eni;
  const isNew = isShared(eni) && state === 'Attaching' && assignmentID === undefined;
  return isNew && primaryIP !== undefined && reservedIps?.has(primaryIP) === true;
}
