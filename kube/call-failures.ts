import { limitText } from '../runtime/limit-text.ts';
import { isKubeError, type KubeError, type KubeErrorCode } from './kube-error.ts';
import { CILIUM_NODES } from './resource-types.ts';
import type { CallListener, CallName } from './track-calls.ts';
import { isOfRole, TOKEN_RIGHT } from './track-rights.ts';

/** A call that the API server refuses, or that has failed for long, since its last good answer. */
export type CallFailure = {
  /** `update nodeeniconfigs`; `token` when no token is accepted; `connection` when no answer comes to any call. */
  readonly call: CallName;
  /** refused: the same call is refused again until a person changes something. failing: it has no good answer for long. */
  readonly kind: 'refused' | 'failing';
  readonly code: KubeErrorCode;
  /** HTTP status; undefined without an answer. */
  readonly status: number | undefined;
  /** The sentence of the API server, or of the connection. */
  readonly text: string;
  /** First and last failure in a row, monotonic milliseconds. */
  readonly sinceMs: number;
  readonly lastMs: number;
  readonly count: number;
};

/** Called when a refusal for want of a right or a token begins, and when it is over, whatever ended it. */
type RefusalListener = (failure: CallFailure, isOver: boolean) => void;

/** The name for all calls while no answer comes to any. */
export const CONNECTION = 'connection';

/** How long other failures than refusals go on before they count: servers restart. */
const FAILING_AFTER_MS = 30_000;
/**
 * What was not called again for so long is needed no more: callers repeat what fails, with 30 s as the longest back-off and 30 s
 * as the time limit of a call.
 */
const OVER_AFTER_MS = 90_000;
/** A creation is not repeated: the next one comes when there is something to create. */
const CREATION_OVER_AFTER_MS = 15 * 60_000;
const SHOWN_CHARS = 500;

/** Keeps what the API server answered last to each kind of call, as far as that was no good answer. */
export class CallFailures {
  readonly #monotonicMs: () => number;
  readonly #failures = new Map<CallName, CallFailure>();
  readonly #listeners: RefusalListener[] = [];

  constructor(clock: { monotonicMs(): number }) {
    this.#monotonicMs = () => clock.monotonicMs();
  }

  /** Notes the end of a call; for `trackCalls`. */
  readonly settled: CallListener = (call, error) => {
    if (!isKubeError(error)) {
      // An abort, or a fault of ours, tells nothing about the server.
      if (error === undefined) this.#clear(call, TOKEN_RIGHT, CONNECTION);
      return;
    }
    if (isUnanswered(error)) {
      if (!(call.startsWith('watch ') && error.code === 'TIMEOUT')) return this.#note(CONNECTION, error);
      // A watch of objects that do not change is silent, and the list that follows shows whether the server answers.
      return this.#clear(call);
    }
    this.#clear(CONNECTION);
    if (error.code === 'UNAUTHORIZED') return this.#note(TOKEN_RIGHT, error);
    this.#clear(TOKEN_RIGHT);
    return ANSWERS.has(error.code) ? this.#clear(call) : this.#note(call, error);
  };

  /** Ends the failure of a write that is not due any more; it may still be refused the next time. */
  notDue(call: CallName): void {
    this.#clear(call);
  }

  /** Calls the listener at each turn from now on, and for what is refused already. */
  subscribe(listener: RefusalListener): void {
    this.#listeners.push(listener);
    for (const failure of this.#failures.values()) if (isOfRights(failure)) listener(failure, false);
  }

  /** Lists what is refused now or has failed for long, refusals first. Empty when all is well. */
  list(): readonly CallFailure[] {
    const nowMs = this.#monotonicMs();
    this.#clear(...[...this.#failures.values()].filter((one) => isOver(one, nowMs)).map(({ call }) => call));
    return [...this.#failures.values()]
      .filter(isShown)
      .sort((a, b) => Number(a.kind === 'failing') - Number(b.kind === 'failing') || (a.call < b.call ? -1 : 1));
  }

  /** The last failure of a call since its last good answer, however short it lasts; undefined without any. */
  last(call: CallName): CallFailure | undefined {
    return this.#failures.get(call);
  }

  #note(call: CallName, { code, status, text }: KubeError): void {
    const nowMs = this.#monotonicMs();
    const kind = REFUSALS.has(code) ? 'refused' : 'failing';
    const before = this.#failures.get(call);
    const isSame = before?.kind === kind && !isOver(before, nowMs);
    const failure: CallFailure = {
      ...{ call, kind, code, status, text: limitText(text, SHOWN_CHARS), lastMs: nowMs },
      sinceMs: isSame ? before.sinceMs : nowMs,
      count: isSame ? before.count + 1 : 1,
    };
    this.#failures.set(call, failure);
    if (isOfRights(before) && !isOfRights(failure)) this.#turned(before, true);
    if (!isOfRights(before) && isOfRights(failure)) this.#turned(failure, false);
  }

  #clear(...calls: readonly CallName[]): void {
    for (const call of calls) {
      const before = this.#failures.get(call);
      if (this.#failures.delete(call) && isOfRights(before)) this.#turned(before, true);
    }
  }

  #turned(failure: CallFailure, isOver: boolean): void {
    for (const listener of this.#listeners) listener(failure, isOver);
  }
}

const REFUSALS: ReadonlySet<KubeErrorCode> = new Set(['FORBIDDEN', 'UNAUTHORIZED', 'INVALID']);

/** What is asked for is there already, the list or the object is to be read again: the caller does that. */
const ANSWERS: ReadonlySet<KubeErrorCode> = new Set(['ALREADY_EXISTS', 'EXPIRED', 'CONFLICT']);

/** No connection, or none that lasted until an answer. */
function isUnanswered({ code, status }: KubeError): boolean {
  return status === undefined && (code === 'UNAVAILABLE' || code === 'TIMEOUT');
}

function isOfRights(failure: CallFailure | undefined): failure is CallFailure {
  return failure?.code === 'FORBIDDEN' || failure?.code === 'UNAUTHORIZED';
}

function isOver({ call, lastMs }: CallFailure, nowMs: number): boolean {
  return nowMs - lastMs > (call.startsWith('create ') ? CREATION_OVER_AFTER_MS : OVER_AFTER_MS);
}

function isShown({ code, kind, count, sinceMs, lastMs }: CallFailure): boolean {
  // A patch that came too late is INVALID too, once.
  if (kind === 'refused') return code !== 'INVALID' || count > 1;
  return lastMs - sinceMs >= FAILING_AFTER_MS;
}

/** Renders a failure in a line: call, code, since when, the sentence of the API server, and what to do. */
export function describeCallFailure(failure: CallFailure, nowMs: number, role: string): string {
  return describe(failure, role, `, since ${sinceText(nowMs - failure.sinceMs)}`);
}

/** Does as `describeCallFailure`, without the time: for an object, which has times of its own. */
export function describeRefusal(failure: CallFailure, role: string): string {
  return describe(failure, role, '');
}

function describe(failure: CallFailure, role: string, since: string): string {
  const { call, kind, code, status, text } = failure;
  const answer = status === undefined ? code : `${status} ${code}`;
  const about = `(${answer}${since}): ${text}; ${nextStepOf(failure, role)}`;
  if (call === CONNECTION) return `the API server does not answer ${about}`;
  if (call === TOKEN_RIGHT) return `the API server does not accept the token ${about}`;
  return kind === 'refused' ? `the API server refuses to ${call} ${about}` : `calls to ${call} fail ${about}`;
}

/** Returns what a person does about a failure. */
export function nextStepOf({ call, kind, code, text }: CallFailure, role: string): string {
  if (call === CONNECTION) return `see whether this node reaches the address that ${role} has, and its clock`;
  if (call === TOKEN_RIGHT) return `look at the ServiceAccount or kubeconfig of ${role}, and the node's clock`;
  if (code === 'NOT_FOUND' && /^(?:list|watch) /.test(call)) return missingDefinition(call.replace(/^\S+ /, ''));
  if (kind === 'failing') return "see the API server's log, and the webhooks that it calls";
  if (code === 'FORBIDDEN' && isOfRole(text)) return `grant "${call}" to ClusterRole ${role}`;
  return 'see the admission webhooks and policies of the cluster, and whether its definitions are of this release';
}

function missingDefinition(resource: string): string {
  const missing = `the definition of ${resource} is missing`;
  if (resource !== CILIUM_NODES.plural) return `${missing}: apply it`;
  return `${missing}; Cilium's operator creates it when it starts, until then nothing is wrong`;
}

const MINUTE_MS = 60_000;

function sinceText(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.max(0, Math.round(ms / 1000))} s`;
  return ms < 120 * MINUTE_MS ? `${Math.round(ms / MINUTE_MS)} min` : `${Math.round(ms / (60 * MINUTE_MS))} h`;
}
