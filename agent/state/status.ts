import { joinLimited } from '../../runtime/limit-text.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import type { CniFailure } from '../api/cni-failure.ts';
import type { NodeState } from './node-state.ts';

/**
 * Returns why an ADD could not be served now; undefined when it could. Reads memory only. A pool that is merely empty
 * for the moment is no reason: STATUS makes the node NotReady, which evicts the very Pods that have the addresses.
 */
export function statusOf(state: NodeState, notReady: string | undefined): CniFailure | undefined {
  if (notReady !== undefined) return { code: CNI_CODE.notAvailable, msg: notReady, details: '' };
  const left = leftOverPods(state);
  if (left !== undefined) return left;
  if (state.conflicts.length > 0) {
    return {
      code: CNI_CODE.limitedConnectivity,
      msg: `${state.conflicts.length} places of ours in the kernel are occupied by others`,
      details: state.conflicts.join('\n'),
    };
  }
  if (state.undone !== undefined) {
    return {
      code: CNI_CODE.limitedConnectivity,
      msg: 'what every Pod of this node needs does not stay set up',
      details: state.undone,
    };
  }
  return servesBridge(state) ? undefined : enisStatusOf(state);
}

/** Why no Pod gets an address of an agent with the role `uplinks`. */
export const NO_ADDS: CniFailure = {
  code: CNI_CODE.notAvailable,
  msg: 'tke-eni-agent of this node runs with --role=uplinks: it gives no addresses to Pods',
  details:
    'another CNI plugin wires the Pods here, such as cilium-cni: remove the CNI configuration that names tke-route-eni, tke-eni-ipamc or tke-direct-eni, or start the agent with --role=full',
};

const SHOWN_PODS = 5;

/**
 * With the role `uplinks`: names Pods that got their addresses of an agent with the role `full`. They go on; who gives
 * addresses now does not know that theirs are in use.
 */
function leftOverPods({ role, leases }: NodeState): CniFailure | undefined {
  if (role !== 'uplinks' || leases.size === 0) return undefined;
  const names = [...leases.values()].map(({ podNamespace, podName, containerId }) =>
    podName === '' ? `sandbox ${containerId}` : `${podNamespace}/${podName}`,
  );
  return {
    code: CNI_CODE.limitedConnectivity,
    msg: `${leases.size} Pods have addresses of before --role=uplinks, which could be given to other Pods too: drain the node`,
    details: joinLimited(names.slice(0, SHOWN_PODS).concat(leases.size > SHOWN_PODS ? ['...'] : []), ', '),
  };
}

/** Returns why no Pod could get an address of an ENI, or a whole ENI, on a node that is set up. */
export function enisStatusOf(state: NodeState): CniFailure | undefined {
  if (servesWholeEnisOnly(state)) return undefined;
  const problems = [...state.eniProblems.values()].map(({ eniId, text }) => `${eniId}: ${text}`).join('\n');
  if (state.servingEnis().size === 0) {
    const isServing = state.leases.size > 0;
    return {
      code: isServing ? CNI_CODE.limitedConnectivity : CNI_CODE.notAvailable,
      msg: 'no ENI of this node is set up',
      details: [
        problems || state.distrusted || state.supplyWaitsFor() || 'waiting for supply',
        ...bridgeDetails(state),
      ].join('\n'),
    };
  }
  if (state.pool.counts().total === 0) {
    return {
      code: CNI_CODE.notAvailable,
      msg: 'the ENIs of this node have no addresses yet',
      details: state.distrusted ?? state.supplyWaitsFor() ?? '',
    };
  }
  return undefined;
}

/** Reports whether a Pod without a word for an ENI could be served: it is on the bridge then, which needs no ENI. */
function servesBridge(state: NodeState): boolean {
  return state.isBridgeDefault && state.acceptedBlocks().some((cidr) => state.preparedBlocks.has(cidr));
}

/** Reports whether the node serves whole ENIs only: it may have no shared ENI, and Pods with whole ENIs need none. */
function servesWholeEnisOnly({ supply, exclusivePool, exclusiveNics }: NodeState): boolean {
  if (supply === undefined || supply.enis.length > 0 || (supply.warm.limit ?? 0) > 0) return false;
  return [...exclusivePool.state.values()].some(({ use, eniId }) => use === 'leased' || exclusiveNics.has(eniId));
}

function bridgeDetails(state: NodeState): readonly string[] {
  if (!state.isBridgeDefault) return [];
  const problem = state.blockProblem();
  if (problem !== undefined) return [`and ${problem}, so no Pod can be on the bridge`];
  return [`and no Pod can be on the bridge: ${state.bridgeProblem ?? 'it is not set up yet'}`];
}
