import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { countSlots } from './count-slots.ts';
import { KINDS } from './eni-kinds.ts';
import type { NodeView } from './node-view.ts';
import { ipv4CountOf, isShared, withEnis } from './with-enis.ts';

/**
 * Marks ENIs that are to be removed and unmarks those that may stay. On a node that is torn down these are all ENIs.
 * Otherwise these are new ENIs that took a static address, and as many as exceed the limit: those that drain already
 * first, then the emptiest. Returns the same status when nothing changes.
 */
export function decideDraining(view: NodeView, status: NodeEniConfigStatus): NodeEniConfigStatus {
  const enis = status.eniInfos ?? [];
  const staying = enis.filter((eni) => isShared(eni) && eni.state !== 'Detaching');
  const surplus =
    view.leaving === 'no' ? staying.length - countSlots(KINDS.shared, view, status).maxEnis : staying.length;
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
export function hasTakenStaticIp({ reservedIps }: Pick<NodeView, 'reservedIps'>, eni: NodeEniInfo): boolean {
  const { primaryIP, state, assignmentID } = eni;
  const isNew = isShared(eni) && state === 'Attaching' && assignmentID === undefined;
  return isNew && primaryIP !== undefined && reservedIps?.has(primaryIP) === true;
}
