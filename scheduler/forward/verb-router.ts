import type { Clock } from '../../runtime/clock.ts';
import { inTime } from '../../runtime/clock-timers.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { RenderedJson } from '../http/rendered-json.ts';
import { RequestError } from '../http/request-error.ts';
import type { VerbHandler } from '../http/serve-extender.ts';
import type { PeerAnswer } from './peer-client.ts';

/** Dependencies of the router. */
type RouterDeps = {
  /** Handlers of this replica, which only the leader may call. */
  readonly verbs: Readonly<Record<string, VerbHandler>>;
  /** Reports whether this replica leads and accepts requests. */
  readonly isLeading: () => boolean;
  /** Returns `host:port` of the leader; undefined while no replica leads. */
  readonly findLeader: (signal: AbortSignal) => Promise<string | undefined>;
  readonly post: (
    address: string,
    verb: string,
    body: string,
    attempt: number,
    signal: AbortSignal,
  ) => Promise<PeerAnswer>;
  readonly clock: Clock;
  readonly log: Logger;
};

/**
 * Longest time that a request waits for a leader: less than the 15 s that kube-scheduler waits for an answer, and more
 * than a change of leader takes.
 */
const LIMIT_MS = 12_000;
/** Time limit of a look-up of the leader. */
const FIND_MS = 3_000;
/** Delay between two attempts. */
const RETRY_MS = 200;

/**
 * Answers requests wherever they arrive: here, while this replica leads, else by the leader. While no replica leads, a
 * request waits. It may be sent twice when an answer was lost: a second binding of a Pod to the same node changes
 * nothing, and the other verbs change nothing at all.
 */
export class VerbRouter {
  readonly #deps: RouterDeps;
  #running = 0;
  readonly #idle = new Set<() => void>();
  #leader: string | undefined;
  /** The look-up under way: requests that come meanwhile share it. */
  #finding: Promise<string | undefined> | undefined;

  constructor(deps: RouterDeps) {
    this.#deps = deps;
  }

  /** The handlers with which a server answers: of the same names. */
  get handlers(): Readonly<Record<string, VerbHandler>> {
    const names = Object.keys(this.#deps.verbs);
    return Object.fromEntries(names.map((verb) => [verb, (...args) => this.#answer(verb, ...args)]));
  }

  /** Resolves when no request is being answered here. */
  async idle(): Promise<void> {
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => this.#idle.add(resolve));
  }

  async #answer(verb: string, body: unknown, signal: AbortSignal, isForwarded: boolean): Promise<unknown> {
    const { isLeading, clock } = this.#deps;
    if (isLeading()) return await this.#answerHere(verb, body, signal);
    // Two replicas must not send a request to and fro.
    if (isForwarded) throw new RequestError('STANDBY', 'another replica leads, or none');
    const text = JSON.stringify(body);
    const deadlineMs = clock.monotonicMs() + LIMIT_MS;
    for (let attempt = 0; ; attempt += 1) {
      const leftMs = Math.max(1, Math.ceil(deadlineMs - clock.monotonicMs()));
      const answer = await inTime(clock, leftMs, (end) => this.#ask(verb, text, attempt, end), signal);
      if (answer !== undefined) return answer;
      signal.throwIfAborted();
      if (clock.monotonicMs() >= deadlineMs) throw new RequestError('STANDBY', `no leader answered for ${LIMIT_MS} ms`);
      await clock.sleep(RETRY_MS, signal);
      if (isLeading()) return await this.#answerHere(verb, body, signal);
    }
  }

  async #answerHere(verb: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    this.#running += 1;
    try {
      return await this.#deps.verbs[verb]?.(body, signal, false);
    } finally {
      this.#running -= 1;
      if (this.#running === 0) {
        for (const resolve of this.#idle) resolve();
        this.#idle.clear();
      }
    }
  }

  /** Asks the leader once; undefined: it has to be looked for again. @throws RequestError when the leader refuses */
  async #ask(verb: string, body: string, attempt: number, signal: AbortSignal): Promise<unknown> {
    const { post, log } = this.#deps;
    try {
      const leader = this.#leader ?? (await this.#find());
      if (leader === undefined) return undefined;
      const answer = await post(leader, verb, body, attempt, signal);
      if (answer.status === 200) return new RenderedJson(answer.text);
      if (answer.status === 400) throw new RequestError('BAD_SHAPE', errorOf(answer.text));
      log.debug('another replica did not answer', { leader: this.#leader, status: answer.status, verb });
    } catch (error) {
      if (error instanceof RequestError) throw error;
      log.debug('the leader was not reached', { leader: this.#leader, verb, error });
    }
    this.#leader = undefined;
    return undefined;
  }

  async #find(): Promise<string | undefined> {
    const { clock, findLeader } = this.#deps;
    this.#finding ??= inTime(clock, FIND_MS, findLeader).finally(() => {
      this.#finding = undefined;
    });
    this.#leader = await this.#finding;
    return this.#leader;
  }
}

function errorOf(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && typeof value['Error'] === 'string' ? value['Error'] : text;
  } catch {
    return text;
  }
}
