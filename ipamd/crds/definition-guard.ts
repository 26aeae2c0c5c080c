import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import { API_GROUP, CLOUD_FINALIZER } from '../../crd/names.ts';
import type { ResourceKind } from '../../crd/resource-kind.ts';
import { hasFinalizer, withoutFinalizer } from '../../kube/finalizers.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { listPages } from '../../kube/list-pages.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, resourceTypeOf } from '../../kube/resource-types.ts';
import { backoffMs } from '../../runtime/backoff.ts';
import type { Clock } from '../../runtime/clock.ts';
import { Gate } from '../../runtime/gate.ts';
import type { Logger } from '../../runtime/log.ts';
import { StampAges } from '../../runtime/stamp-ages.ts';
import { INSTALLED_AGAIN_ANNOTATION, whyClash } from './decide-definition.ts';
import { installDefinitions } from './install-definitions.ts';

/** Dependencies of the guard; one for a process. */
type DefinitionGuardDeps = {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with the reason when definitions are lost, and with undefined once all are served again. */
  readonly report: (problem: string | undefined) => void;
};

/** State of a definition. `unknown`: the API server did not say. `foreign`: another program's is in its place. */
type DefinitionState =
  | { readonly kind: 'standing'; readonly uid: string }
  | { readonly kind: 'absent' | 'terminating' | 'unknown' }
  | { readonly kind: 'foreign'; readonly why: string };

/** Definitions are read at this interval. */
const CHECK_MS = 15_000;
/** The interval while some are lost. */
const LOST_CHECK_MS = 1_000;
/** NodeENIConfigs that are made within this time after a loss are filled from the cloud first. */
const LATELY_MS = 3_600_000;
const BACKOFF = { firstMs: 1_000, maxMs: 15_000, factor: 2, jitter: 0 };
/** Confirmed deletions that are remembered. */
const MAX_CONFIRMED = 10_000;

/**
 * Watches over the definitions of ipamd's kinds while it runs. Who deletes a definition deletes all objects of the kind,
 * which is no request to release what they hold. So a loss ends the work of the leader, the definitions are installed
 * again, and the work begins again with empty objects, which are filled from the cloud.
 */
export class DefinitionGuard {
  readonly #deps: DefinitionGuardDeps;
  readonly #uids = new Map<string, string>();
  readonly #confirmed = new Set<string>();
  readonly #ages: StampAges;
  readonly #gate = new Gate();
  #isDoubted = false;
  #doubtCheck: Promise<void> = Promise.resolve();
  #lostMs: number | undefined;
  #restoredMs: number | undefined;

  constructor(deps: DefinitionGuardDeps) {
    this.#deps = deps;
    this.#ages = new StampAges(deps.clock);
  }

  /** Aborted when a definition is lost; another signal once all stand again. */
  get lost(): AbortSignal {
    return this.#gate.closed;
  }

  /**
   * Reports whether definitions were lost a short time ago, by this process or an earlier one: objects that are made now
   * replace lost ones.
   */
  get wereLostLately(): boolean {
    return this.#lostMs !== undefined && this.#deps.clock.monotonicMs() - this.#lostMs < LATELY_MS;
  }

  /** Returns since when lost definitions are served again, monotonic milliseconds; undefined: none was lost. */
  get restoredMs(): number | undefined {
    return this.#restoredMs;
  }

  /** Resolves when all definitions stand. Rejects with the signal's reason. */
  async untilStanding(signal: AbortSignal): Promise<void> {
    await this.#gate.untilOpen(signal);
  }

  /** Reads the definitions until aborted, and installs those that are lost. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#check(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        this.#deps.log.error('definitions could not be installed again, will try again', { error });
      }
      const until = this.#gate.isOpen ? AbortSignal.any([signal, this.#gate.closed]) : signal;
      const waitMs = failures > 0 ? backoffMs(BACKOFF, failures, 0) : this.#gate.isOpen ? CHECK_MS : LOST_CHECK_MS;
      await this.#deps.clock.sleep(waitMs, until).catch(() => {});
    }
  }

  /**
   * Reports whether the deletion of an object was asked for the object itself, and not for its whole kind: its definition
   * is read after the deletion was seen. A lost definition is noted at once. Idempotent; each object is asked for once.
   * @throws KubeError when the API server does not answer
   */
  async isOwnDeletion(kind: ResourceKind, uid: string, signal: AbortSignal): Promise<boolean> {
    if (!this.#gate.isOpen) return false;
    if (this.#confirmed.has(uid)) return true;
    const state = await this.#read(kind, signal);
    if (state.kind === 'unknown') return false;
    if (state.kind !== 'standing' || this.#isReplaced(kind, state)) {
      this.#lose(`${nameOf(kind)} is ${state.kind === 'standing' ? 'another one' : state.kind}`);
      return false;
    }
    if (this.#confirmed.size >= MAX_CONFIRMED) this.#confirmed.clear();
    this.#confirmed.add(uid);
    return true;
  }

  /** Notes that an object went: who looks at the objects of its kind next reads the definitions first. */
  doubt(): void {
    this.#isDoubted = true;
  }

  /**
   * Reports whether the definitions stand and are those of before, after they were read if an object went meanwhile: an
   * object that is missing may have gone with its definition, which another replica has installed again. A loss ends the
   * work of the caller.
   * @throws KubeError when the API server does not answer
   */
  async areSame(signal: AbortSignal): Promise<boolean> {
    if (!this.#gate.isOpen) return false;
    const { lost } = this;
    if (this.#isDoubted) {
      this.#isDoubted = false;
      this.#doubtCheck = this.#check(signal);
    }
    try {
      await this.#doubtCheck;
    } catch (error) {
      this.#isDoubted = true;
      throw error;
    }
    return !lost.aborted && this.#gate.isOpen;
  }

  async #check(signal: AbortSignal): Promise<void> {
    const states = await Promise.all(
      RESOURCE_KINDS.map(async (kind) => ({ kind, state: await this.#read(kind, signal) })),
    );
    const gone = states.filter(({ state }) => state.kind === 'absent' || state.kind === 'terminating');
    const replaced = states.filter(({ kind, state }) => this.#isReplaced(kind, state));
    const foreign = states.flatMap(({ state }) => (state.kind === 'foreign' ? [state.why] : []));
    // Nothing is written over another program's.
    if (foreign.length > 0) return this.#lose(foreign.join('; '));
    if (gone.length > 0) this.#lose(gone.map(({ kind, state }) => `${nameOf(kind)} is ${state.kind}`).join(', '));
    else if (replaced.length > 0) this.#lose(`${replaced.map(({ kind }) => nameOf(kind)).join(', ')} was made again`);
    for (const { kind, state } of states) if (state.kind === 'terminating') await this.#freeObjects(kind, signal);
    if (gone.some(({ state }) => state.kind === 'absent')) {
      const kinds = gone.filter(({ state }) => state.kind === 'absent').map(({ kind }) => kind);
      const annotations = { [INSTALLED_AGAIN_ANNOTATION]: new Date(this.#deps.clock.nowMs()).toISOString() };
      await installDefinitions({ ...this.#deps, kinds, annotations }, signal);
    }
    for (const { kind, state } of states) {
      // Without the right to read it there is no uid, and the first one that is read later is no other.
      if (state.kind === 'standing' && state.uid !== '') this.#uids.set(nameOf(kind), state.uid);
    }
    if (gone.length === 0 && states.every(({ state }) => state.kind !== 'unknown')) this.#stand();
  }

  #isReplaced(kind: ResourceKind, state: DefinitionState): boolean {
    const known = this.#uids.get(nameOf(kind));
    return state.kind === 'standing' && known !== undefined && known !== state.uid;
  }

  async #read(kind: ResourceKind, signal: AbortSignal): Promise<DefinitionState> {
    try {
      const object = await this.#deps.client.get(CUSTOM_RESOURCE_DEFINITIONS, { name: nameOf(kind) }, signal);
      if (object === undefined) return { kind: 'absent' };
      if (object.metadata.deletionTimestamp !== undefined) return { kind: 'terminating' };
      const why = whyClash(kind, object);
      if (why !== undefined) return { kind: 'foreign', why };
      this.#noteAge(nameOf(kind), object.metadata.annotations?.[INSTALLED_AGAIN_ANNOTATION]);
      return { kind: 'standing', uid: object.metadata.uid ?? '' };
    } catch (error) {
      // Without the right to read them nothing shows a loss; the missing right is reported.
      if (isKubeError(error, 'FORBIDDEN')) return { kind: 'standing', uid: this.#uids.get(nameOf(kind)) ?? '' };
      if (isKubeError(error)) return { kind: 'unknown' };
      throw error;
    }
  }

  /** Notes how long ago a definition was installed again, by whichever process. */
  #noteAge(name: string, installedAgain: string | undefined): void {
    const ageMs = this.#ages.ageMs(name, installedAgain);
    if (installedAgain === undefined) return;
    this.#lostMs = Math.max(this.#lostMs ?? Number.NEGATIVE_INFINITY, this.#deps.clock.monotonicMs() - ageMs);
  }

  #lose(why: string): void {
    this.#lostMs = this.#deps.clock.monotonicMs();
    const problem = `definitions of resources are lost: ${why}`;
    if (this.#gate.close(problem))
      this.#deps.log.error('definitions of resources are lost; nothing is released until they are back', { why });
    this.#deps.report(problem);
  }

  #stand(): void {
    if (this.#gate.isOpen) return;
    this.#restoredMs = this.#deps.clock.monotonicMs();
    this.#confirmed.clear();
    this.#deps.log.info('all definitions of resources are served again');
    this.#deps.report(undefined);
    this.#gate.open();
  }

  /**
   * Takes ipamd's finalizer off the objects that are deleted with their definition: while one has it, the definition
   * cannot be made again. Nothing of what they hold is released.
   */
  async #freeObjects(kind: ResourceKind, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#deps;
    const type = resourceTypeOf(kind);
    let freed = 0;
    for await (const { items } of listPages(client, type, {}, signal)) {
      for (const object of items) {
        if (object.metadata.deletionTimestamp === undefined || !hasFinalizer(object, CLOUD_FINALIZER)) continue;
        if (await this.#freeObject(type, object, signal)) freed += 1;
      }
    }
    if (freed > 0) log.warn('objects went with their definition', { definition: nameOf(kind), objects: freed });
  }

  async #freeObject(
    type: ReturnType<typeof resourceTypeOf>,
    object: KubeObject,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      await this.#deps.client.update(type, withoutFinalizer(object, CLOUD_FINALIZER), signal);
      return true;
    } catch (error) {
      // Another client wrote it, or it is gone: the next look shows which.
      if (isKubeError(error, 'CONFLICT', 'NOT_FOUND')) return false;
      throw error;
    }
  }
}

function nameOf({ plural }: ResourceKind): string {
  return `${plural}.${API_GROUP}`;
}
