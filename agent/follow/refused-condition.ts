import { AGENT_REFUSED_CONDITION } from '../../crd/names.ts';
import { type CallFailure, CONNECTION, describeRefusal } from '../../kube/call-failures.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import { MAX_TEXT, messageText } from '../../runtime/limit-text.ts';
import type { AgentParts } from '../state/ports.ts';
import { AGENT_ROLE, type AgentFailure } from '../supply/api-failures.ts';

/** The condition `ENIAgentRefused` as the Node has it. */
export type ShownCondition = { readonly status: string; readonly reason: string; readonly lastTransitionTime: string };

/** Reads the condition from a Node; undefined without it. */
export function shownConditionOf({ status: nodeStatus }: KubeObject): ShownCondition | undefined {
  const found = listOf(recordOf(nodeStatus)['conditions'])
    .map(recordOf)
    .find(({ type }) => type === AGENT_REFUSED_CONDITION);
  if (found === undefined) return undefined;
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
  const { status, reason, lastTransitionTime } = found;
  return { status: textOf(status), reason: textOf(reason), lastTransitionTime: textOf(lastTransitionTime) };
}

/** What the condition is to say. */
type Verdict = { readonly status: string; readonly reason: string; readonly message: string };

/**
 * Decides what the condition is to say; undefined: it says that, or nothing is to be said. A Node whose agent was never refused
 * anything has none. It stays with the call that it names while that fails, and with the first message: other calls come and go,
 * and texts of webhooks may differ each time.
 */
function decideRefusedCondition(
  shown: ShownCondition | undefined,
  failures: readonly AgentFailure[],
): Verdict | undefined {
  const needed = failures.filter((one) => one.call !== CONNECTION && one.isNeededByPods);
  const failure = needed.find((one) => reasonOf(one) === shown?.reason) ?? needed[0];
  if (failure === undefined && shown === undefined) return undefined;
  const required =
    failure === undefined
      ? { status: 'False', reason: 'Answered', message: `the API server answers the calls of ${AGENT_ROLE}` }
      : { status: 'True', reason: reasonOf(failure), message: describeRefusal(failure, AGENT_ROLE) };
  return isSame(shown, required) ? undefined : required;
}

function isSame(one: Pick<Verdict, 'status' | 'reason'> | undefined, other: Verdict): boolean {
  return one?.status === other.status && one.reason === other.reason;
}

/** `UpdateNodeeniconfigs` for what is refused, `UpdateNodeeniconfigsFails` for what fails: a reason is one word. */
function reasonOf({ call, kind }: CallFailure): string {
  const words = call.replace(/(?:^|[^a-z]+)([a-z])/g, (_all, letter: string) => letter.toUpperCase());
  return kind === 'refused' ? words : `${words}Fails`;
}

/** Dependencies of keeping the condition. */
type RefusedConditionDeps = Pick<AgentParts, 'background' | 'clock' | 'log'> & {
  readonly kube: Pick<KubeClient, 'patch'>;
  readonly nodeName: string;
  readonly failures: () => readonly AgentFailure[];
  /** Reports whether the Node could not be read when that was last tried. */
  readonly isNodeUnread: () => boolean;
};

/** The condition of this node's Node, kept up to date until `close`. */
type RefusedCondition = {
  /** Takes what the Node was read to say. */
  accept(shown: ShownCondition | undefined): void;
  close(): void;
};

/** The first publication has been answered by then, so that an agent that starts does not take back what is still so. */
const EVERY_MS = 30_000;
/** What was written and is not there is a read that lags, or someone who takes it away: each write goes to all who watch Nodes. */
const SAME_AGAIN_MS = 10 * 60_000;

/** Keeps the condition. What is refused here too stays undone. */
export function keepRefusedCondition(deps: RefusedConditionDeps): RefusedCondition {
  const closing = new AbortController();
  const keeper = new ConditionKeeper(deps);
  deps.background('keeping the condition of the Node', keeper.run(closing.signal));
  return { accept: (shown) => keeper.accept(shown), close: () => closing.abort('closed') };
}

class ConditionKeeper {
  readonly #deps: RefusedConditionDeps;
  /** `unknown` while no Node was read. */
  #shown: ShownCondition | undefined | 'unknown' = 'unknown';
  #written: { readonly verdict: Verdict; readonly atMs: number } | undefined;

  constructor(deps: RefusedConditionDeps) {
    this.#deps = deps;
  }

  accept(shown: ShownCondition | undefined): void {
    this.#shown = shown;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    for (;;) {
      await clock.sleep(EVERY_MS, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        await this.#keep(signal);
      } catch (error) {
        if (!signal.aborted) log.warn('the condition of the Node was not written, will be tried again', { error });
      }
    }
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { clock, failures, isNodeUnread } = this.#deps;
    if (this.#shown === 'unknown') {
      if (!isNodeUnread()) return;
      // A patch that changes nothing is answered with the Node, and writes nothing.
      await this.#patch({}, signal);
    }
    const shown = this.#shown === 'unknown' ? undefined : this.#shown;
    const verdict = decideRefusedCondition(shown, failures());
    if (verdict === undefined) return;
    const before = this.#written;
    const nowMs = clock.monotonicMs();
    if (before !== undefined && isSame(before.verdict, verdict) && nowMs - before.atMs < SAME_AGAIN_MS) return;
    const nowText = new Date(clock.nowMs()).toISOString();
    const condition = {
      ...{ type: AGENT_REFUSED_CONDITION, ...verdict, message: messageText(verdict.message, MAX_TEXT.condition) },
      lastHeartbeatTime: nowText,
      lastTransitionTime: shown?.status === verdict.status ? shown.lastTransitionTime : nowText,
    };
    // Conditions merge by type, so others stay.
    await this.#patch({ status: { conditions: [condition] } }, signal);
    this.#written = { verdict, atMs: nowMs };
  }

  async #patch(body: object, signal: AbortSignal): Promise<void> {
    const { kube, nodeName } = this.#deps;
    const patch = { kind: 'strategic', body, subresource: 'status' } as const;
    this.accept(shownConditionOf(await kube.patch(NODES, { name: nodeName }, patch, signal)));
  }
}
