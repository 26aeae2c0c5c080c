import type { Conflict } from '../../dataplane/conflict.ts';
import { diffHost } from '../../dataplane/diff.ts';
import type { NodeNetwork } from '../../dataplane/network.ts';
import { type Operation, renderOperation } from '../../dataplane/operation.ts';
import { findPlannedEnis } from '../eni/place-enis.ts';
import type { NodeState } from '../node-state.ts';
import { desiredState } from './desired-state.ts';
import { leftOut, type ReconcileDeps, withoutReliant } from './reconcile.ts';

/** What a repair pass would do now. */
export type RepairPreview = {
  readonly operations: readonly Operation[];
  /** What it would leave alone: somebody keeps undoing them, or they rely on what is left alone. */
  readonly held: readonly Operation[];
  readonly conflicts: readonly Conflict[];
};

/**
 * Plans, looks and compares as a repair pass does, and changes nothing: neither kernel nor journal, nor what the agent
 * knows. Undefined while the node has no primary interface.
 */
export async function previewRepair(
  deps: Pick<ReconcileDeps, 'clock' | 'kernel' | 'fights' | 'nodeNetwork'> & { readonly state: NodeState },
): Promise<RepairPreview | undefined> {
  const { kernel, fights, clock } = deps;
  const node = deps.nodeNetwork();
  if (node === undefined) return undefined;
  const desired = () => desiredNow(deps, node);
  const nft = await kernel.readNft(desired());
  const wanted = desired();
  const { operations, conflicts } = diffHost(wanted, kernel.observe(wanted, nft));
  const nowMs = clock.monotonicMs();
  const allowed = withoutReliant(
    operations,
    operations.filter((operation) => !fights.wouldHold(renderOperation(operation), nowMs)),
  );
  return { operations: allowed, held: leftOut(operations, allowed), conflicts };
}

function desiredNow({ state, kernel }: Parameters<typeof previewRepair>[0], node: NodeNetwork) {
  const links = kernel.links();
  return desiredState(state, node, findPlannedEnis(state, links), links);
}
