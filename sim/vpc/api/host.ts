import type { Clock } from '../../../runtime/clock.ts';
import { seededRandom } from '../../support/seeded-random.ts';
import { type Fabric, playEvents } from './fabric.ts';
import { type Fault, FaultScript } from './faults.ts';
import { ApiError } from './model/api-error.ts';
import type { TaskPlan } from './model/call.ts';
import { CloudModel } from './model/cloud-model.ts';
import type { CloudSpec } from './model/state.ts';

/** How a simulated cloud behaves. */
export type HostSettings = {
  /** Seeds ids, durations and faults. */
  readonly seed?: number;
  /** How long tasks last, milliseconds; default 500 to 2,000. */
  readonly taskMs?: readonly [number, number];
  /** How long a request is under way, milliseconds; default 0. */
  readonly latencyMs?: readonly [number, number];
  /** Calls a second that an API takes; default 100 for what is documented so, else 20. */
  readonly perSecond?: (action: string) => number;
  readonly fabric?: Fabric;
};

/** What came of a request; `none` is no answer at all. */
export type HostAnswer =
  | { readonly kind: 'answer'; readonly response: object }
  | { readonly kind: 'error'; readonly code: string; readonly text: string; readonly requestId: string }
  | { readonly kind: 'http'; readonly status: number }
  | { readonly kind: 'reset' }
  | { readonly kind: 'hang' };

/** A moment of a request: before, or after, it had its effect. */
export type RequestMoment = {
  readonly action: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly moment: 'before' | 'after';
};

/** A request that the host saw, for those who count calls. */
export type SeenRequest = {
  readonly action: string;
  readonly atMs: number;
  readonly code: string;
  readonly requestId: string;
};

const FAST: readonly string[] = [
  'CreateNetworkInterface',
  'AttachNetworkInterface',
  'DetachNetworkInterface',
  'AssignPrivateIpAddresses',
  'UnassignPrivateIpAddresses',
  'DescribeNetworkInterfaces',
  'DescribeVpcTaskResult',
];

/**
 * A cloud that runs: the model, on a clock, behind rate limits, with faults, and with packets if there is a fabric.
 * What speaks to it (HTTP or a function call) is up to its bindings.
 */
export class CloudHost {
  readonly model: CloudModel;
  readonly faults: FaultScript;
  readonly clock: Clock;
  /** Every request since the start or the last `forget`. */
  readonly seen: SeenRequest[] = [];
  /** Asked at each moment of each request; 'lose' breaks the connection there. For tests that stop the world. */
  gate: ((request: RequestMoment) => Promise<'go' | 'lose'>) | undefined;
  #settings: HostSettings;
  #random: () => number;
  #startMs: number;
  #windows = new Map<string, { second: number; calls: number }>();
  #requests = 0;
  #fabricWork: Promise<void> = Promise.resolve();
  #brokenBy: unknown;

  constructor(spec: CloudSpec, clock: Clock, settings: HostSettings = {}) {
    this.model = new CloudModel(spec);
    this.clock = clock;
    this.#settings = settings;
    const seed = settings.seed ?? 1;
    this.faults = new FaultScript(seed + 1);
    this.#random = seededRandom(seed);
    this.#startMs = clock.nowMs();
    this.model.advance(this.#startMs);
    const { clb } = this.model.state;
    settings.fabric?.watchHealth?.(({ listenerId, key, isAlive }) => clb.noteHealth(listenerId, key, isAlive));
    clb.health.isProbed = settings.fabric?.watchHealth !== undefined;
  }

  /** Why packets no longer follow the model: a command of the packets' side failed. No request is served after that. */
  get brokenBy(): unknown {
    return this.#brokenBy;
  }

  /** Calls seen by name of the API. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { action } of this.seen) counts[action] = (counts[action] ?? 0) + 1;
    return counts;
  }

  /** Forgets the requests seen. */
  forget(): void {
    this.seen.length = 0;
  }

  /** Ends what is due, and waits until the packets follow. */
  async catchUp(): Promise<void> {
    this.model.advance(this.clock.nowMs());
    await this.#follow();
  }

  /** Lets the packets follow what has happened so far. */
  async #follow(): Promise<void> {
    const events = this.model.state.events.splice(0);
    const { fabric } = this.#settings;
    if (fabric !== undefined && events.length > 0) {
      this.#fabricWork = this.#fabricWork
        .then(() => playEvents(fabric, events))
        .catch((error: unknown) => {
          this.#brokenBy ??= error;
          throw error;
        });
      // Whoever asks next is told; nobody may be asking now.
      this.#fabricWork.catch(() => undefined);
    }
    await this.#fabricWork;
  }

  /** Serves one request from its arrival to its answer. */
  async serve(product: string, action: string, params: Readonly<Record<string, unknown>>): Promise<HostAnswer> {
    const requestId = this.#requestId();
    const faults = this.faults.draw(action, this.clock.nowMs() - this.#startMs, params);
    const slowMs = faults.reduce((sum, fault) => sum + (fault.kind === 'latency' ? fault.ms : 0), 0);
    const latencyMs = between(this.#settings.latencyMs ?? [0, 0], this.#random()) + slowMs;
    if (latencyMs > 0) await this.clock.sleep(latencyMs / 2);
    const answer = await this.#throughGate(action, params, () =>
      this.#answer(product, action, params, requestId, faults),
    );
    if (latencyMs > 0) await this.clock.sleep(latencyMs / 2);
    this.seen.push({ action, atMs: this.clock.nowMs() - this.#startMs, code: codeOf(answer), requestId });
    return answer;
  }

  async #throughGate(
    action: string,
    params: Readonly<Record<string, unknown>>,
    serve: () => Promise<HostAnswer>,
  ): Promise<HostAnswer> {
    if ((await this.gate?.({ action, params, moment: 'before' })) === 'lose') return { kind: 'reset' };
    const answer = await serve();
    return (await this.gate?.({ action, params, moment: 'after' })) === 'lose' ? { kind: 'reset' } : answer;
  }

  async #answer(
    product: string,
    action: string,
    params: Readonly<Record<string, unknown>>,
    requestId: string,
    faults: readonly Fault[],
  ): Promise<HostAnswer> {
    await this.catchUp();
    if (this.#isOverLimit(action)) {
      const text = `Your current request times exceed the limit of ${this.#perSecond(action)} in 1 second.`;
      return { kind: 'error', code: 'RequestLimitExceeded', text, requestId };
    }
    const before = faults.find((fault) => isEnding(fault) && !fault.after);
    if (before !== undefined) return endingOf(before, requestId);
    const staleMs = faults.reduce((sum, fault) => sum + staleMsOf(fault), 0);
    const nowMs = this.clock.nowMs();
    let answer: HostAnswer;
    try {
      const response = this.model.handle({
        product,
        action,
        params,
        requestId,
        nowMs,
        ...(staleMs === 0 ? {} : { asOfMs: nowMs - staleMs }),
        refusesOne: faults.some((fault) => fault.kind === 'refuse-one'),
        planTask: () => this.#planTask(faults),
      });
      answer = {
        kind: 'answer',
        response: faults.some(({ kind }) => kind === 'partial') ? halved(response) : response,
      };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      answer = { kind: 'error', code: error.code, text: error.message, requestId };
    }
    // What has no task is in force when it is answered.
    await this.#follow();
    const after = faults.find((fault) => isEnding(fault) && fault.after === true);
    return after === undefined ? answer : endingOf(after, requestId);
  }

  #planTask(faults: readonly Fault[]): TaskPlan {
    const slowMs = faults.reduce((sum, fault) => sum + (fault.kind === 'slow-task' ? fault.ms : 0), 0);
    const lastsMs = between(this.#settings.taskMs ?? [500, 2_000], this.#random()) + slowMs;
    const task = faults.find((fault) => fault.kind === 'task');
    return { fate: task?.fate ?? 'succeed', lastsMs };
  }

  #isOverLimit(action: string): boolean {
    const second = Math.floor(this.clock.nowMs() / 1000);
    const window = this.#windows.get(action);
    if (window === undefined || window.second !== second) {
      this.#windows.set(action, { second, calls: 1 });
      return false;
    }
    window.calls += 1;
    return window.calls > this.#perSecond(action);
  }

  #perSecond(action: string): number {
    return this.#settings.perSecond?.(action) ?? (FAST.includes(action) ? 100 : 20);
  }

  #requestId(): string {
    this.#requests += 1;
    const hex = this.#requests.toString(16).padStart(12, '0');
    return `00000000-0000-4000-8000-${hex}`;
  }
}

/** At the beginning of time there was nothing. */
function staleMsOf(fault: Fault): number {
  if (fault.kind === 'empty') return Number.POSITIVE_INFINITY;
  return fault.kind === 'stale' ? fault.ms : 0;
}

/** Cuts the lists of an answer in half, and leaves its total. */
function halved<T extends object>(response: T): T {
  const cut = (value: unknown): unknown =>
    Array.isArray(value) ? value.slice(0, Math.floor(value.length / 2)) : value;
  return Object.fromEntries(Object.entries(response).map(([key, value]) => [key, cut(value)])) as T;
}

type Ending = Extract<Fault, { readonly kind: 'error' | 'http' | 'hang' | 'reset' }>;

function isEnding(fault: Fault): fault is Ending {
  return ['error', 'http', 'hang', 'reset'].includes(fault.kind);
}

function endingOf(fault: Fault, requestId: string): HostAnswer {
  switch (fault.kind) {
    case 'error':
      return { kind: 'error', code: fault.code, text: 'An injected fault.', requestId };
    case 'http':
      return { kind: 'http', status: fault.status };
    case 'hang':
      return { kind: 'hang' };
    default:
      return { kind: 'reset' };
  }
}

function codeOf(answer: HostAnswer): string {
  if (answer.kind === 'answer') return 'OK';
  if (answer.kind === 'error') return answer.code;
  return answer.kind === 'http' ? `HTTP_${answer.status}` : answer.kind;
}

function between([least, most]: readonly [number, number], share: number): number {
  return Math.round(least + (most - least) * share);
}
