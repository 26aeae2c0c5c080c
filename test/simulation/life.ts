import { classifyError } from '../../cloud/classify-error.ts';
import type { TencentApi } from '../../cloud/tencent/requests.ts';
import type { KubeClient, KubeObject, ResourceType, WatchEvent } from '../../kube/kube-client.ts';
import { KubeError } from '../../kube/kube-error.ts';
import type { Clock } from '../../runtime/clock.ts';

/** What happens at a point of a life. */
export type Disturbance =
  /** The program is killed. What it has sent goes on. */
  | { readonly kind: 'die' }
  /** The connection breaks: before the request has its effect, or before its answer arrives. */
  | { readonly kind: 'lose' }
  /** What passes here is late by so many milliseconds. */
  | { readonly kind: 'late'; readonly ms: number }
  /** The connection breaks, and the request arrives all the same, so many milliseconds later. */
  | { readonly kind: 'stray'; readonly ms: number };

/** A place where a life touches the world. */
export type Point = {
  readonly at: number;
  readonly moment: 'before' | 'after' | 'watch';
  /** Name of the call, without names that chance gives. */
  readonly call: string;
  readonly isChange: boolean;
};

/** What a program that was killed gets for what it still does on its way: nothing is done any more. */
class Killed extends Error {
  override readonly name = 'Killed';
}

/** Objects of which a life hears: a change, or a page of a list. */
export type Told = { readonly plural: string } & (
  | { readonly kind: 'change'; readonly event: WatchEvent }
  | { readonly kind: 'page'; readonly isFirst: boolean; readonly items: readonly KubeObject[] }
);

/** What the world gives to a life. */
type LifeDeps = {
  readonly clock: Clock;
  readonly note: (what: string) => void;
  /** Milliseconds by which each answer is later than it could be. */
  readonly jitterMs: () => number;
  /** Called with each call as it is sent to the cloud; what it returns is called when the call succeeded. */
  readonly onCall: (action: string, request: Readonly<Record<string, unknown>>) => () => void;
  /** Called with what it hears of the API server's objects. */
  readonly onTold?: (told: Told) => void;
  readonly onDeath: () => void;
};

/**
 * A life of a program. It reaches the world through its life alone, and nothing once it is dead: then what it waits for never
 * comes, and its watches are cut. Each passage is a point, counted from 1: before and after each call, and at each message
 * of a watch.
 */
export class Life {
  readonly name: string;
  readonly clock: Clock;
  readonly #deps: LifeDeps;
  readonly #end = new AbortController();
  readonly #disturbances = new Map<number, Disturbance>();
  /** By the name of the call before which they come. */
  readonly #next = new Map<string, Disturbance>();
  readonly #points: Point[] = [];
  #resumed: PromiseWithResolvers<void> | undefined;
  #diedAt: Point | undefined;

  constructor(name: string, deps: LifeDeps) {
    this.name = name;
    this.#deps = deps;
    const { clock } = deps;
    this.clock = {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      bootMs: () => clock.bootMs(),
      sleep: (ms, signal) => this.#hold(clock.sleep(ms, signal)),
    };
  }

  get isDead(): boolean {
    return this.#end.signal.aborted;
  }

  /** Aborts when it is dead. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** The points so far, in order. */
  get points(): readonly Point[] {
    return this.#points;
  }

  /** The point at which it was killed; undefined while it lives, and when it was killed from outside. */
  get diedAt(): Point | undefined {
    return this.#diedAt;
  }

  /** Has something happen at a point. */
  disturb(at: number, disturbance: Disturbance): void {
    this.#disturbances.set(at, disturbance);
  }

  /** Has something happen before the next call of a name. */
  disturbNext(call: string, disturbance: Disturbance): void {
    this.#next.set(call, disturbance);
  }

  /** Nothing more happens at any point. */
  undisturb(): void {
    this.#disturbances.clear();
    this.#next.clear();
  }

  /** Kills it now. */
  kill(): void {
    if (this.isDead) return;
    this.#deps.note('killed');
    this.#end.abort(new Error('killed'));
    this.#deps.onDeath();
  }

  /** Stops it, as SIGSTOP does: nothing reaches it until it is resumed, then everything does. */
  pause(): void {
    this.#deps.note('paused');
    this.#resumed ??= Promise.withResolvers();
  }

  /** Lets it go on. */
  resume(): void {
    this.#deps.note('resumed');
    this.#resumed?.resolve();
    this.#resumed = undefined;
  }

  /** The API server as this life reaches it. */
  kube(client: KubeClient): KubeClient {
    const pass =
      (verb: string, isChange: boolean) =>
      <T>({ plural }: ResourceType, name: string, signal: AbortSignal | undefined, send: Send<T>): Promise<T> =>
        // What is in a ConfigMap its name says: a lock, or a record.
        this.#pass(
          kubePassage(verb, plural === 'configmaps' && name !== '' ? `${plural} ${name}` : plural, isChange),
          signal,
          send,
        );
    const [get, list] = [pass('get', false), pass('list', false)];
    const [create, update, patch] = [pass('create', true), pass('update', true), pass('patch', true)];
    const remove = pass('delete', true);
    return {
      get: (type, ref, signal) => get(type, ref.name, signal, (end) => client.get(type, ref, end)),
      listPage: async (type, query, signal) => {
        const page = await list(type, '', signal, (end) => client.listPage(type, query, end));
        const isFirst = query.continueToken === undefined;
        this.#deps.onTold?.({ kind: 'page', plural: type.plural, isFirst, items: page.items });
        return page;
      },
      create: (type, object, signal) =>
        create(type, object.metadata.name, signal, (end) => client.create(type, object, end)),
      update: (type, object, signal) =>
        update(type, object.metadata.name, signal, (end) => client.update(type, object, end)),
      patch: (type, ref, change, signal) =>
        patch(type, ref.name, signal, (end) => client.patch(type, ref, change, end)),
      delete: (type, ref, only, signal) => remove(type, ref.name, signal, (end) => client.delete(type, ref, only, end)),
      watch: (type, query, signal, onOpen) => {
        const over = AbortSignal.any([signal, this.#end.signal]);
        return this.#follow(type.plural, client.watch(type, query, over, onOpen));
      },
    };
  }

  /** The cloud as this life reaches it. */
  cloud(api: TencentApi): TencentApi {
    return {
      call: async (call, request, signal) => {
        const broken = () => classifyError({ code: 'NETWORK', action: call, text: 'the connection broke' });
        let onAnswer = (): void => {};
        const onSend = (): void => {
          onAnswer = this.#deps.onCall(call, { ...request });
        };
        const passage = { call, isChange: !call.startsWith('Describe'), broken, onSend };
        const answer = await this.#pass(passage, signal, (end) => api.call(call, request, end ?? signal));
        onAnswer();
        return answer;
      },
      renewCredentials: () => api.renewCredentials(),
    };
  }

  /** Passes a point of something synchronous, which is a change. @throws Killed when it is dead, or dies there */
  passNow(moment: 'before' | 'after', call: string): void {
    this.throwIfDead();
    const point: Point = { at: this.#points.length + 1, moment, call, isChange: true };
    this.#points.push(point);
    if (this.#disturbanceAt(point)?.kind !== 'die') return;
    this.#deps.note(`die ${moment} ${call}`);
    this.#diedAt = point;
    this.kill();
    throw new Killed();
  }

  /** @throws Killed */
  throwIfDead(): void {
    if (this.isDead) throw new Killed();
  }

  /** Waits for something of its machine; forever once it is dead. */
  take<T>(arriving: Promise<T>): Promise<T> {
    return this.isDead ? never() : this.#hold(arriving);
  }

  async #pass<T>(passage: Passage, signal: AbortSignal | undefined, send: Send<T>): Promise<T> {
    const { lateMs, isLost } = await this.#point('before', passage);
    signal?.throwIfAborted();
    passage.onSend?.();
    const sent = lateMs > 0 ? this.#sendLate(lateMs, isLost ? undefined : signal, send) : send(signal);
    if (isLost) {
      sent.catch(() => {});
      throw passage.broken();
    }
    const answer = await this.#hold(sent);
    const answered = await this.#point('after', passage);
    if (answered.isLost) throw passage.broken();
    await this.#hold(this.#deps.clock.sleep(answered.lateMs + this.#deps.jitterMs(), signal));
    return answer;
  }

  /** A request that is long under way: its sender may give it up, and it arrives all the same. */
  async #sendLate<T>(ms: number, signal: AbortSignal | undefined, send: Send<T>): Promise<T> {
    const arrives = this.#deps.clock.sleep(ms).then(() => send(new AbortController().signal));
    if (signal === undefined) return await arrives;
    arrives.catch(() => {});
    const { promise, reject } = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    return await Promise.race([arrives, promise]);
  }

  async *#follow(plural: string, events: AsyncIterable<WatchEvent>): AsyncGenerator<WatchEvent, void> {
    const reader = events[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.#hold(reader.next());
        if (next.done === true) return;
        await this.#point('watch', kubePassage('watch', plural, false));
        this.#deps.onTold?.({ kind: 'change', plural, event: next.value });
        yield next.value;
      }
    } finally {
      if (!this.isDead) await reader.return?.();
    }
  }

  /** Passes a point. Returns by how much what passes there is late, and whether it is lost for this life. @throws Error when the connection breaks */
  async #point(moment: Point['moment'], { call, isChange, broken }: Passage): Promise<Delay> {
    if (this.isDead) return await never();
    const point: Point = { at: this.#points.length + 1, moment, call, isChange };
    this.#points.push(point);
    const disturbance = this.#disturbanceAt(point);
    if (disturbance === undefined) return { lateMs: 0, isLost: false };
    this.#deps.note(`${disturbance.kind} ${moment} ${call}`);
    switch (disturbance.kind) {
      case 'die':
        this.#diedAt = point;
        this.kill();
        return await never();
      case 'lose':
        throw broken();
      case 'late':
        return { lateMs: disturbance.ms, isLost: false };
      case 'stray':
        return { lateMs: disturbance.ms, isLost: true };
    }
  }

  #disturbanceAt({ at, moment, call }: Point): Disturbance | undefined {
    const next = moment === 'before' ? this.#next.get(call) : undefined;
    if (next !== undefined) this.#next.delete(call);
    return this.#disturbances.get(at) ?? next;
  }

  /** What arrives for a life that is paused waits; for one that is dead, forever. */
  async #hold<T>(arriving: Promise<T>): Promise<T> {
    try {
      return await arriving;
    } finally {
      while (this.#resumed !== undefined) await this.#resumed.promise;
      if (this.isDead) await never();
    }
  }
}

/** What passes between a life and the world. */
type Passage = Omit<Point, 'at' | 'moment'> & { readonly broken: () => Error; readonly onSend?: () => void };

/** What happens to what passes a point. */
type Delay = { readonly lateMs: number; readonly isLost: boolean };

/** Sends a request; the signal is that of whoever waits for its answer. */
type Send<T> = (signal: AbortSignal | undefined) => Promise<T>;

function kubePassage(verb: string, plural: string, isChange: boolean): Passage {
  const call = `${verb} ${plural}`;
  const broken = () => new KubeError({ code: 'UNAVAILABLE', request: call, text: 'the connection was closed' });
  return { call, isChange, broken };
}

/** A promise of its own each time: reactions on a shared one would keep every dead life in memory. */
function never(): Promise<never> {
  return new Promise(() => {});
}
