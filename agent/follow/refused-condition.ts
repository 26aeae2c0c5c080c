import { AGENT_REFUSED_CONDITION } from '../../crd/names.ts';
import { type CallFailure, CONNECTION, describeRefusal } from '../../kube/call-failures.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { MAX_TEXT, messageText } from '../../runtime/limit-text.ts';
import type { Logger } from '../../runtime/log.ts';
import { AGENT_ROLE, isNeededByPods } from '../supply/api-failures.ts';

/** The condition `ENIAgentRefused` as the Node has it. */
export type ShownCondition = { readonly status: string; readonly reason: string; readonly lastTransitionTime: string };

/** One condition in a strategic patch of `nodes/status`; conditions merge by type, so others stay. */
type ConditionPatch = Readonly<Record<string, string>>;

/**
 * Decides the condition that says what the API server refuses the agent; undefined: it is up to date. A Node whose agent
 * was never refused anything has none. The message is that of the first refusal: texts of webhooks may differ each time.
 */
function decideRefusedCondition(
  shown: ShownCondition | undefined,
  failures: readonly CallFailure[],
  nowText: string,
): ConditionPatch | undefined {
  const failure = failures.find((one) => one.call !== CONNECTION && isNeededByPods(one));
  if (failure === undefined && shown === undefined) return undefined;
  const required =
    failure === undefined
      ? { status: 'False', reason: 'Answered', message: 'the API server answers the calls of tke-eni-agent' }
      : { status: 'True', reason: reasonOf(failure), message: describeRefusal(failure, AGENT_ROLE) };
  if (shown?.status === required.status && shown.reason === required.reason) return undefined;
  const since = shown?.status === required.status ? shown.lastTransitionTime : nowText;
  return {
    ...{ type: AGENT_REFUSED_CONDITION, ...required, message: messageText(required.message, MAX_TEXT.condition) },
    ...{ lastHeartbeatTime: nowText, lastTransitionTime: since },
  };
}

/** `UpdateNodeeniconfigs`: a reason is one word. */
function reasonOf({ call }: CallFailure): string {
  return call.replace(/(?:^|[^a-z]+)([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

/** Dependencies of keeping the condition. */
type RefusedConditionDeps = {
  readonly kube: Pick<KubeClient, 'patch'>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly failures: () => readonly CallFailure[];
  /** The condition as the Node has it; `unknown` while no Node was read. */
  readonly shown: () => ShownCondition | undefined | 'unknown';
};

/** The first publication has been answered by then, so that an agent that starts does not take back what is still so. */
const EVERY_MS = 30_000;

/** Writes the condition whenever it is not up to date, until aborted. What is refused here too stays undone. Never rejects. */
export async function keepRefusedCondition(
  { kube, nodeName, clock, log, failures, shown }: RefusedConditionDeps,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await clock.sleep(EVERY_MS, signal).catch(() => {});
    if (signal.aborted) return;
    const known = shown();
    if (known === 'unknown') continue;
    const condition = decideRefusedCondition(known, failures(), new Date(clock.nowMs()).toISOString());
    if (condition === undefined) continue;
    const patch = { kind: 'strategic', body: { status: { conditions: [condition] } }, subresource: 'status' } as const;
    try {
      await kube.patch(NODES, { name: nodeName }, patch, signal);
    } catch (error) {
      if (!signal.aborted) log.warn('the condition of the Node was not written, will be tried again', { error });
    }
  }
}
