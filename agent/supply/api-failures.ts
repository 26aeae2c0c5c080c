import { type CallFailure, type CallFailures, CONNECTION, describeCallFailure } from '../../kube/call-failures.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { type CallName, trackCalls } from '../../kube/track-calls.ts';
import { TOKEN_RIGHT } from '../../kube/track-rights.ts';

/** The ClusterRole, and the name in messages. */
export const AGENT_ROLE = 'tke-eni-agent';

/** Calls that the role need not have: what they would read is configured, or read elsewhere. */
const OPTIONAL_CALLS: ReadonlySet<string> = new Set(['list servicecidrs']);

/** Wraps the agent's client so that `failures` has what is refused to it, and what fails for long. */
export function trackAgentCalls(client: KubeClient, failures: CallFailures): KubeClient {
  return trackCalls(client, (call, error) => {
    const isAnswer = isKubeError(error) && error.status !== undefined && error.code !== 'UNAUTHORIZED';
    failures.settled(call, OPTIONAL_CALLS.has(call) && isAnswer ? undefined : error);
  });
}

/** A failure of a call of the agent. */
export type AgentFailure = CallFailure & {
  /** Whether Pods may wait for what the failure is about. Events, and the status of the Node, no Pod waits for. */
  readonly isNeededByPods: boolean;
};

/** What Pods get their network by: the object with the supply and the demand, and the Pods themselves. */
const NEEDED = /^(?:get|list|watch|update|patch) (?:nodeeniconfigs|ciliumnodes|pods)(?:\/status)?$/;
/** The podCIDR of the Node, where Pods get addresses of it. */
const NEEDED_FOR_BLOCKS = /^(?:list|watch) nodes$/;

/**
 * Lists what is refused to the agent now, or fails for long, refusals first.
 * @param hasBlocks whether Pods may get addresses of the Node's podCIDR
 */
export function listAgentFailures(failures: CallFailures, hasBlocks: boolean): readonly AgentFailure[] {
  return failures.list().map((failure) => {
    const { call } = failure;
    const isNeeded = call === CONNECTION || call === TOKEN_RIGHT || NEEDED.test(call);
    return { ...failure, isNeededByPods: isNeeded || (hasBlocks && NEEDED_FOR_BLOCKS.test(call)) };
  });
}

/** What the answers of the API server say about readiness. */
type ApiContact = {
  /** Whether the object with the supply was listed since the agent started. */
  readonly isHeard: boolean;
  /** The call that lists it. */
  readonly listCall: CallName;
  readonly failures: readonly AgentFailure[];
  /** The last failure of a call since its last good answer. */
  readonly last: (call: CallName) => CallFailure | undefined;
};

/**
 * Returns why `/readyz` is not ready as far as the API server is concerned; undefined when it is. An agent that was never
 * given its list is not: with a wrong address, token or clock the next Pods of its node get nothing, and only its own process
 * shows that, so that a rollout stops here. One that was stays ready while the server is away, which is the same on every
 * node; it is not while it is refused what Pods need.
 */
export function whyApiUnready({ isHeard, listCall, failures, last }: ApiContact, nowMs: number): string | undefined {
  const refused = failures.find(({ kind, isNeededByPods }) => kind === 'refused' && isNeededByPods);
  if (refused !== undefined) return describeCallFailure(refused, nowMs, AGENT_ROLE);
  if (isHeard) return undefined;
  const silence = last(CONNECTION);
  const answer = silence ?? last(listCall);
  const why = answer === undefined ? '' : `: ${describeCallFailure(answer, nowMs, AGENT_ROLE)}`;
  const what = answer === silence ? 'did not answer' : `did not ${listCall}`;
  return `the API server ${what} since this agent started${why}`;
}
