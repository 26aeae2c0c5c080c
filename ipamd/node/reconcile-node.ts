import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { type Baseline, baselineOf, withConfirmedOffers } from '../nec/decide-trust.ts';
import type { NodeProblem } from '../nec/node-view.ts';
import { isSameData } from '../nec/same-data.ts';
import { lookForDrift, lookWhenReleased, type Mended, mendRestored, type ReadStatus, readStatus } from './mend-node.ts';
import { lacksCloudFinalizer, withoutCloudFinalizer, withStatus } from './merge-status.ts';
import { readNec, writeNec } from './nec-access.ts';
import type { NecEntry } from './nec-entry.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import { noteIntents } from './note-intents.ts';
import { abandonPlan, type Plan, planTurn, type TurnInput } from './plan-turn.ts';
import { startCall, waitForAny } from './running-calls.ts';
import { type AllocatableTelling, type AllocatableTold, tellAllocatable } from './tell-allocatable.ts';
import { tellMended, tellProblems } from './tell-problems.ts';

/** What happens to a key next; the same shape as the type of the controllers' runtime. */
type NodeReconcileResult = { readonly kind: 'done' } | { readonly kind: 'again'; readonly afterMs: number };

/** A call that takes longer goes on by itself; the node is enqueued when it ends. */
const LONGEST_TURN_MS = 20_000;
/** More than any reconcile needs: each pass writes, or waits for a call. */
const MOST_ROUNDS = 200;
const MOST_CONFLICTS = 10;
/** A blocked node is checked again at least this often: another node may have closed the breaker. */
const LONGEST_HOLD_MS = 60_000;
/** A call that outlasts its reconcile enqueues the node; this timer is for a lost notification. */
const CALL_LOOK_MS = 30_000;
const DONE: NodeReconcileResult = { kind: 'done' };

/**
 * Brings one node's supply to its demand, as far as that is possible now. At most one may run for a node. Every cloud
 * call is recorded, in a write guarded by the state that was decided on, before it is made. When the term ends it stops
 * at once and writes nothing more. @throws KubeError when the API server does not accept a write
 */
export async function reconcileNode(deps: NodeDeps, name: string, signal: AbortSignal): Promise<NodeReconcileResult> {
  const stop = AbortSignal.any([signal, deps.leader.term.signal]);
  try {
    stop.throwIfAborted();
    return await new NodeTurn(deps, name, stop).run();
  } catch (error) {
    if (stop.aborted) return DONE;
    throw error;
  }
}

class NodeTurn {
  readonly #deps: NodeDeps;
  readonly #name: string;
  readonly #stop: AbortSignal;
  readonly #memory: NodeMemory;
  readonly #endMs: number;
  #conflicts = 0;

  constructor(deps: NodeDeps, name: string, stop: AbortSignal) {
    this.#deps = deps;
    this.#name = name;
    this.#stop = stop;
    this.#memory = deps.memory.of(name);
    this.#endMs = deps.clock.monotonicMs() + LONGEST_TURN_MS;
  }

  async run(): Promise<NodeReconcileResult> {
    this.#memory.isTurning = true;
    try {
      return await this.#rounds();
    } finally {
      this.#memory.isTurning = false;
    }
  }

  async #rounds(): Promise<NodeReconcileResult> {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const entry = await readNec(this.#deps, this.#name, this.#memory, this.#stop);
      if (entry === undefined) return this.#gone();
      const result = await this.#round(entry);
      if (result !== undefined) return result;
      this.#stop.throwIfAborted();
    }
    this.#deps.log.error('a node does not come to rest', { node: this.#name, rounds: MOST_ROUNDS });
    return { kind: 'again', afterMs: LONGEST_HOLD_MS };
  }

  /** Runs one pass; returns undefined to run another one. */
  async #round(entry: NecEntry): Promise<NodeReconcileResult | undefined> {
    const read = readStatus(entry);
    noteIntents(this.#deps, this.#memory, read.status);
    this.#deps.memory.claimCalls.note(this.#name, read.status);
    if (read.why !== undefined) return await this.#mend(entry, read.spec, read.status, read.why);
    const drift = await lookForDrift(this.#deps, this.#memory, this.#inputOf(entry, read), this.#stop);
    const baseline = takeBaseline(this.#deps, this.#memory, read);
    const input = this.#inputOf(entry, withConfirmedOffers(read.spec, drift.status, baseline));
    const facts = this.#deps.facts.viewOf(this.#name, entry);
    const plan = planTurn(this.#deps, this.#memory, input, facts);
    for (const look of plan.looks)
      startCall(this.#deps, this.#memory, look.kind, this.#caseOf(entry, plan.status, look));
    const telling = this.#tellAllocatable(read.status, plan);
    const status = telling.status;
    const isOther = !isSameData(status, read.status) || lacksCloudFinalizer(entry.object, status);
    if (isOther) return await this.#write(entry, { ...plan, status }, drift, telling.told);
    this.#begin(entry, plan);
    if (plan.claimWaits !== undefined) this.#deps.claimsWait?.(this.#name, plan.claimWaits);
    tellProblems(this.#deps, this.#memory, entry, plan);
    return plan.finished.length > 0 ? undefined : await this.#rest(entry, input, soonerOf(plan, telling.waitMs), drift);
  }

  #tellAllocatable(before: NodeEniConfigStatus, plan: Plan): AllocatableTelling {
    // An object that may be released is not written for this.
    const now = plan.ending.kind === 'released' ? undefined : plan.allocatable;
    const nowMs = this.#deps.clock.monotonicMs();
    return tellAllocatable(before, plan.status, now, this.#memory.allocatableTold, nowMs);
  }

  async #write(
    entry: NecEntry,
    plan: Plan,
    drift: Mended,
    told: AllocatableTold | undefined,
  ): Promise<NodeReconcileResult | undefined> {
    const result = await this.#put(entry, plan.status).catch((error: unknown) => {
      abandonPlan(this.#deps, this.#name, plan);
      throw error;
    });
    if (result !== 'written') {
      abandonPlan(this.#deps, this.#name, plan);
      return result === 'gone' ? this.#gone() : this.#conflict();
    }
    drift.onWritten?.();
    if (told !== undefined) this.#memory.allocatableTold = told;
    this.#tellMended(entry, plan, drift);
    this.#begin(entry, plan);
    return undefined;
  }

  #tellMended(entry: NecEntry, { putBack = [], refused = [] }: Plan, { mended }: Mended): void {
    for (const text of refused)
      tellMended(this.#deps, entry, 'intent-refused', `intent is not ipamd's, not made: ${text}`);
    if (putBack.length > 0) {
      const text = `status took ${putBack.join(', ')} out of use, which live Pods have: in use again`;
      tellMended(this.#deps, entry, 'address-in-use', text);
    }
    if (mended !== undefined) tellMended(this.#deps, entry, 'drift', `made as the cloud has it: ${mended}`);
  }

  /** Starts the calls that are recorded now. */
  #begin(entry: NecEntry, { finished, sends, status }: Plan): void {
    for (const id of finished) this.#memory.calls.delete(id);
    for (const send of sends) startCall(this.#deps, this.#memory, send.kind, this.#caseOf(entry, status, send));
  }

  /** Ends the reconcile, or waits for a call, when there is nothing to write now. */
  async #rest(entry: NecEntry, input: TurnInput, plan: Plan, drift: Mended): Promise<NodeReconcileResult | undefined> {
    const { clock } = this.#deps;
    const running = [...this.#memory.calls.values()].filter((call) => call.outcome === undefined);
    if (running.length < this.#memory.calls.size) return undefined;
    if (running.length > 0) {
      const leftMs = this.#endMs - clock.monotonicMs();
      if (leftMs <= 0) return again(CALL_LOOK_MS, plan.waitMs, drift.afterMs, holdMs(plan));
      const ms = Math.min(
        leftMs,
        ...[plan.waitMs, drift.afterMs].filter((wait) => wait !== undefined && wait > 0).map(Number),
      );
      await waitForAny(clock, running, ms, this.#stop);
      return undefined;
    }
    if (plan.ending.kind === 'released') return await this.#release(entry, input);
    const waits = [plan.waitMs, drift.afterMs, holdMs(plan)].filter((ms) => ms !== undefined);
    return waits.length === 0 ? DONE : again(...waits);
  }

  /** Describes the cloud a last time before the finalizer is removed: what is found is removed first. */
  async #release(entry: NecEntry, input: TurnInput): Promise<NodeReconcileResult | undefined> {
    if (entry.object.metadata.deletionTimestamp === undefined) return DONE;
    const look = await lookWhenReleased(this.#deps, input, this.#stop);
    if (look.kind === 'wait') return again(look.ms);
    const object = look.kind === 'found' ? withStatus(entry.object, look.status) : withoutCloudFinalizer(entry.object);
    const result = await writeNec(this.#deps, this.#name, this.#memory, object, this.#stop);
    if (result === 'conflict') return this.#conflict();
    if (look.kind === 'found' && result === 'written') return undefined;
    return this.#gone();
  }

  /** Rebuilds the status from the cloud, once no own call is in flight that could change the cloud meanwhile. */
  async #mend(
    entry: NecEntry,
    spec: TurnInput['spec'],
    status: NodeEniConfigStatus,
    why: string,
  ): Promise<NodeReconcileResult | undefined> {
    const running = [...this.#memory.calls.values()].filter((call) => call.outcome === undefined);
    const leftMs = this.#endMs - this.#deps.clock.monotonicMs();
    if (running.length > 0 && leftMs <= 0) return again(CALL_LOOK_MS);
    if (running.length > 0) {
      await waitForAny(this.#deps.clock, running, leftMs, this.#stop);
      return undefined;
    }
    if (entry.decoded === undefined) this.#tellFaults(entry);
    const input = this.#inputOf(entry, { spec, status });
    const mended = await mendRestored(this.#deps, this.#memory, input, why, this.#stop);
    if (mended.kind === 'wait') return again(mended.ms);
    const result = await this.#put(entry, mended.status);
    if (result === 'gone') return this.#gone();
    if (result === 'conflict') return this.#conflict();
    this.#memory.calls.clear();
    tellMended(this.#deps, entry, 'made-anew', `${why}: the status is made anew from the cloud`);
    return undefined;
  }

  #put(entry: NecEntry, status: NodeEniConfigStatus) {
    return writeNec(this.#deps, this.#name, this.#memory, withStatus(entry.object, status), this.#stop);
  }

  #conflict(): NodeReconcileResult | undefined {
    this.#conflicts += 1;
    return this.#conflicts > MOST_CONFLICTS ? again(1_000) : undefined;
  }

  #gone(): NodeReconcileResult {
    this.#deps.memory.forget(this.#name);
    this.#deps.observe.onProblems?.(this.#name, []);
    return DONE;
  }

  #tellFaults(entry: NecEntry): void {
    const plan = { problems: faultsOf(entry), ending: { kind: 'idle' as const } };
    tellProblems(this.#deps, this.#memory, entry, plan);
  }

  #inputOf(entry: NecEntry, { spec, status }: Pick<TurnInput, 'spec' | 'status'>): TurnInput {
    const reservedIps = () => {
      const facts = this.#deps.facts.viewOf(this.#name, entry);
      return facts.kind === 'known' ? facts.parts.reservedIps : facts.reservedIps;
    };
    const uid = entry.object.metadata.uid ?? '';
    return { name: this.#name, uid, spec, status, faults: faultsOf(entry), reservedIps };
  }

  #caseOf(entry: NecEntry, status: NodeEniConfigStatus, { intent, priority, sourceNode }: Plan['sends'][number]) {
    const source = sourceNode === undefined ? {} : { sourceNode };
    return { node: this.#name, uid: entry.object.metadata.uid ?? '', intent, status, priority, ...source };
  }
}

/** Returns the baseline for offers: the state at the first pass after a list. */
function takeBaseline({ necs }: NodeDeps, memory: NodeMemory, { spec, status }: ReadStatus): Baseline {
  const listings = necs.listings ?? 0;
  if (memory.baseline?.listings !== listings) memory.baseline = undefined;
  memory.baseline ??= baselineOf(spec, status, listings);
  return memory.baseline;
}

/** More faults would fill a condition without being useful. */
const MOST_FAULTS = 5;

function faultsOf({ faults }: NecEntry): readonly NodeProblem[] {
  if (faults.length === 0) return [];
  const shown = faults
    .slice(0, MOST_FAULTS)
    .map(({ path, expected, got }) => `${path}: expected ${expected}, got ${got}`);
  return [{ reason: 'ObjectInvalid', message: shown.join('; ') }];
}

function soonerOf(plan: Plan, waitMs: number | undefined): Plan {
  if (waitMs === undefined) return plan;
  return { ...plan, waitMs: Math.min(plan.waitMs ?? waitMs, waitMs) };
}

function holdMs({ ending }: Plan): number | undefined {
  if (ending.kind !== 'hold') return undefined;
  return Math.min(ending.afterMs, LONGEST_HOLD_MS);
}

function again(...waits: readonly (number | undefined)[]): NodeReconcileResult {
  const known = waits.filter((ms) => ms !== undefined);
  return { kind: 'again', afterMs: Math.max(1, Math.ceil(Math.min(...known))) };
}
