import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { DirectHold } from './decide-direct-growth.ts';
import type { Ids } from './decision.ts';
import { directEnisOf, directSupplyOf, wishesHere } from './direct-supply.ts';
import { withCondition } from './judge-ready.ts';
import type { NodeView } from './node-view.ts';

/** The condition of a node's exclusive ENIs. */
export const DIRECT_READY = 'DirectENIReady';

/**
 * Returns the status with the condition of its exclusive ENIs, with numbers; a node that serves none, and never did, has
 * no such condition. The same object when it stands already. Pure, takes the time.
 */
export function withDirectReady(
  status: NodeEniConfigStatus,
  view: NodeView,
  holds: readonly DirectHold[],
  ids: Ids,
): NodeEniConfigStatus {
  const isHeld = status.conditions?.some(({ type }) => type === DIRECT_READY) ?? false;
  const isServed = (view.maxDirectENI ?? 0) > 0 || directEnisOf(status).length > 0 || wishesHere(view).length > 0;
  if (!isHeld && !isServed) return status;
  const judged = judge(status, view, holds);
  return withCondition(status, { type: DIRECT_READY, ...judged }, ids);
}

function judge(status: NodeEniConfigStatus, view: NodeView, holds: readonly DirectHold[]) {
  if (view.leaving !== 'no') {
    return { status: 'False' as const, reason: 'Draining', message: 'everything of this node is given back' };
  }
  const hold = holds.find(({ reason }) => reason !== 'CallUnderWay');
  if (hold !== undefined) return { status: 'False' as const, reason: hold.reason, message: hold.message };
  const { have, want } = directSupplyOf(view, status);
  if (have < want || holds.length > 0) {
    return { status: 'False' as const, reason: 'CallUnderWay', message: 'more exclusive ENIs are being asked for' };
  }
  return { status: 'True' as const, reason: 'SupplyMet' };
}
