import type { Decision, Ids, Leader } from './decision.ts';
import type { NodeView } from './node-view.ts';

/** Decides the next step of one node. Pure, but for the ids that it takes. */
export function decideNode(_view: NodeView, _leader: Leader, _ids: Ids): Decision {
  throw new Error('not built yet');
}
