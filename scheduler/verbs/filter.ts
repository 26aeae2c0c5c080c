import type { ChangeSignal } from '../../runtime/change-signal.ts';
import { decodeNodesArgs, type NodesArgs, type Shape } from '../api/extender-messages.ts';
import { renderAllFit, renderFilterResult } from '../api/render-filter-result.ts';
import { decideFilter, type FilterOutcome } from '../decide/decide-filter.ts';
import { buildFitContext } from '../decide/fit-context.ts';
import { RenderedJson } from '../http/rendered-json.ts';
import { type PodRequest, readPodRequest } from '../index/pod-request.ts';
import type { RecentPods } from './recent-pods.ts';
import { expireReservations, type VerbDeps } from './verb-deps.ts';

/** Dependencies of filter. */
type FilterDeps = VerbDeps & {
  /** Notified whenever the index changes. */
  readonly changes: ChangeSignal;
  readonly recent: RecentPods;
  /** Longest wait, milliseconds; 0: no wait. */
  readonly waitMs: number;
};

/**
 * Delay after a change before the nodes are evaluated again. In a large cluster changes never stop, and each evaluation
 * of all nodes costs milliseconds.
 */
const GATHER_MS = 20;

/**
 * Returns which nodes fit a Pod. Waits a short time, once for each Pod, when the reason that no node fits is transient.
 */
export async function filter(deps: FilterDeps, body: unknown, signal: AbortSignal): Promise<RenderedJson> {
  const args = decodeNodesArgs(body);
  const demand = readPodRequest(args.pod);
  deps.recent.remember(args.uid, demand ?? 'none');
  if (demand === undefined) return resultOf(args, allOf(args.names));
  const deadlineMs = deps.clock.monotonicMs() + deps.waitMs;
  const mayWait = deps.waitMs > 0 && deps.recent.mayWait(demand.uid, deps.clock.monotonicMs());
  for (;;) {
    const { monotonicMs } = expireReservations(deps);
    const hasClaim = !demand.isStatic || deps.index.claim(demand.key) !== undefined;
    const outcome = hasClaim ? decide(deps, demand, args.names) : undefined;
    const isWorthWaiting = outcome === undefined || outcome.isWorthWaiting;
    const leftMs = deadlineMs - monotonicMs;
    if (!mayWait || !isWorthWaiting || leftMs <= 0 || signal.aborted) {
      return outcome === undefined ? claimMissing(demand) : resultOf(args, outcome);
    }
    deps.recent.recordWait(demand.uid, monotonicMs);
    await deps.changes.wait(leftMs, signal);
    await deps.clock.sleep(Math.min(GATHER_MS, leftMs), signal).catch(() => {});
  }
}

function decide({ index }: FilterDeps, demand: PodRequest, names: readonly string[]): FilterOutcome {
  return decideFilter(buildFitContext(index, demand), names, index.nodesOf(names));
}

function allOf(names: readonly string[]): FilterOutcome {
  return { fitting: names, failed: [], unresolvable: [], isWorthWaiting: false };
}

/**
 * Renders an error instead of a refusal by each node. After an error the scheduler retries by itself. After a refusal
 * it would wait for a cluster event, and the creation of a claim is not such an event.
 */
function claimMissing({ key }: PodRequest): RenderedJson {
  const text = `VpcIPClaim ${key} is not there yet; tke-eni-ipamd makes it: look at it if this lasts`;
  const none = { Nodes: null, NodeNames: null, FailedNodes: {}, FailedAndUnresolvableNodes: {} };
  return new RenderedJson(JSON.stringify({ ...none, Error: text }));
}

function resultOf({ nodes, names }: NodesArgs, outcome: FilterOutcome): RenderedJson {
  // The same array: all fit, and none is refused.
  if (nodes === undefined && outcome.fitting === names) return new RenderedJson(renderAllFit(names));
  const isFitting = new Set(nodes === undefined ? [] : outcome.fitting);
  const items = nodes?.filter((node) => isFitting.has(String((node['metadata'] as Shape)['name'])));
  return new RenderedJson(renderFilterResult(outcome, items));
}
