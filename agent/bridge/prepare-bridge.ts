import type { BridgeNetwork, NodeNetwork } from '../../dataplane/network.ts';
import { PRIORITY } from '../../dataplane/numbers.ts';
import { type Operation, summarizeOperation } from '../../dataplane/operation.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { ReconcileReport } from '../repair/reconcile.ts';
import type { NodeState } from '../state/node-state.ts';

/** Dependencies of preparing. */
type PrepareBridgeDeps = {
  readonly state: NodeState;
  readonly nodeNetwork: () => NodeNetwork | undefined;
  /** Decides whether the agent masquerades, where that was not decided yet. */
  readonly decideMasquerade: () => Promise<void>;
  /** Takes over the Pods that another program put on the bridge. */
  readonly takeOver: () => Promise<void>;
  /** Runs a repair pass that begins after this call. */
  readonly pass: (cause: string) => Promise<unknown>;
};

/**
 * Sets the node up for GlobalRoute Pods of a block: rule 1024 of the block and the bridge are there when it resolves. A
 * node that is set up costs nothing. @throws CniFailureError 11
 */
export async function prepareBridge(deps: PrepareBridgeDeps, cidr: string, again?: 'again'): Promise<BridgeNetwork> {
  const { state, nodeNetwork } = deps;
  const isFirst = !state.isBridgeUsed;
  state.isBridgeUsed = true;
  // Before the first pass that sets the bridge up as ours.
  if (isFirst) await deps.takeOver();
  const isUndecided = state.masquerade === undefined;
  if (isUndecided) await deps.decideMasquerade();
  if (isUndecided || again === 'again' || !state.preparedBlocks.has(cidr)) await deps.pass('bridge');
  const bridge = nodeNetwork()?.bridge;
  if (bridge !== undefined && state.preparedBlocks.has(cidr)) return bridge;
  throw new CniFailureError(
    CNI_CODE.tryAgainLater,
    'the bridge of this node is not set up yet',
    state.refusedBlocks.get(cidr) ??
      state.bridgeProblem ??
      'the node has no primary interface yet; see --primary-interface',
  );
}

/** Notes which blocks a pass set up, and why not. */
export function notePreparedBlocks(state: NodeState, node: NodeNetwork | undefined, report: ReconcileReport): void {
  const undone = [...report.failed.map(({ operation }) => operation), ...report.paused];
  const problem = node?.bridge === undefined ? undefined : undone.find((one) => isOfBridge(one, node.bridge));
  state.bridgeProblem = problem === undefined ? undefined : `not done: ${summarizeOperation(problem)}`;
  const isPrepared = node?.bridge !== undefined && problem === undefined;
  state.preparedBlocks = new Set(isPrepared ? node.podCidrs.map(({ cidr }) => cidr) : []);
}

function isOfBridge(operation: Operation, bridge: BridgeNetwork | undefined): boolean {
  switch (operation.kind) {
    case 'make-bridge':
      return true;
    case 'add-rule':
      return operation.rule.priority === PRIORITY.podCidr;
    case 'add-address':
      return operation.address.ifindex === bridge?.ifindex;
    case 'set-link':
      return operation.ifindex === bridge?.ifindex;
    default:
      return false;
  }
}
