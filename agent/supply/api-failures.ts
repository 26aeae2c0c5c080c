import { type CallFailure, type CallFailures, CONNECTION, describeCallFailure } from '../../kube/call-failures.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { trackCalls } from '../../kube/track-calls.ts';
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

/** What Pods get their network by: the object with the supply and the demand, the Pods themselves, and the podCIDR of the Node. */
const NEEDED =
  /^(?:(?:get|list|watch|update|patch) (?:nodeeniconfigs|ciliumnodes|pods)(?:\/status)?|(?:list|watch) nodes)$/;

/** Tells whether Pods may wait for what the failure is about. Events, and the status of the Node, no Pod waits for. */
export function isNeededByPods({ call }: Pick<CallFailure, 'call'>): boolean {
  return call === CONNECTION || call === TOKEN_RIGHT || NEEDED.test(call);
}

/**
 * Returns why `/readyz` is not ready as far as the API server is concerned; undefined when it is. An agent that was never
 * answered is not: with a wrong address, token or clock the next Pods of its node get nothing, and only its own process
 * shows that, so that a rollout stops here. One that was answered stays ready while the server is away, which is the
 * same on every node; it is not while it is refused what Pods need.
 */
export function whyApiUnready(
  { isHeard, failures }: { readonly isHeard: boolean; readonly failures: CallFailures },
  nowMs: number,
): string | undefined {
  const refused = failures.list().find((failure) => failure.kind === 'refused' && isNeededByPods(failure));
  if (refused !== undefined) return describeCallFailure(refused, nowMs, AGENT_ROLE);
  if (isHeard) return undefined;
  const last = failures.last(CONNECTION);
  const why = last === undefined ? '' : `: ${describeCallFailure(last, nowMs, AGENT_ROLE)}`;
  return `the API server did not answer since this agent started${why}`;
}
