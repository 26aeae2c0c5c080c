import { CLOUD_FINALIZER } from '../../crd/names.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { withoutFinalizer } from '../../kube/finalizers.ts';
import { openChildSignal } from '../../runtime/child-signal.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import { isSameData } from '../decide/same-data.ts';
import { type Baseline, baselineOf, withConfirmedOffers } from '../decide/with-confirmed-offers.ts';
import { classifyStatus, noteContradictions } from './classify-status.ts';
import { type AllocatableDecision, type AllocatableWrite, decideAllocatableWrite } from './decide-allocatable-write.ts';
import { lacksCloudFinalizer, readNec, type WriteResult, withStatus, writeNec } from './nec-access.ts';
import type { NodeDeps } from './node-deps.ts';
import { type NodeMemory, type RunningCall, trackIntents } from './node-memory.ts';
import { abandonPlan, type Plan, planReconcile } from './plan-reconcile.ts';
import { type ReconcileInput, readInput } from './read-input.ts';
import { checkBeforeRelease, type RepairResult, rebuildRestored, repairDrift } from './repair-status.ts';
import { reportDeletion, reportProblems, reportRepair } from './report-problems.ts';
import { startCall, waitForAny } from './running-calls.ts';

/** A call that takes longer goes on by itself; the node is enqueued when it ends. */
const MAX_RECONCILE_MS = 20_000;
/** More than any reconcile needs: each pass writes, or waits for a call. */
const MAX_PASSES = 200;
const MAX_CONFLICTS = 10;
/** A blocked node is checked again at least this often: another node may have closed the breaker. */
const MAX_BLOCKED_MS = 60_000;
/** A call that outlasts its reconcile enqueues the node; this timer is for a lost notification. */
const CALL_CHECK_MS = 30_000;
/** A node that does not stay, while the cache has it as one that does, is looked at again after this. */
const RENEWAL_RECHECK_MS = 1_000;
const DONE: ReconcileResult = { kind: 'done' };

/**
 * Brings one node's supply to its demand, as far as that is possible now. At most one may run for a node. Every cloud
 * call is recorded, in a write guarded by the state that was decided on, before it is made. While calls run it waits for
 * the first that ends, and ends itself when the node is queued again: something has changed. When the term ends it stops
 * at once and writes nothing more. @throws KubeError when the API server does not accept a write
 */
export async function reconcileNode(deps: NodeDeps, name: string, signal: AbortSignal): Promise<ReconcileResult> {
  const { signal: stop, close } = openChildSignal(signal, deps.leader.term.signal);
  try {
    stop.throwIfAborted();
    return await new NodeReconciler(deps, name, stop).run();
  } catch (error) {
    if (stop.aborted) return DONE;
    throw error;
  } finally {
    close();
  }
}

class NodeReconciler {
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
    this.#endMs = deps.clock.monotonicMs() + MAX_RECONCILE_MS;
  }

  async run(): Promise<ReconcileResult> {
    this.#memory.isReconciling = true;
    try {
      return await this.#runPasses();
    } finally {
      this.#memory.isReconciling = false;
    }
  }

  async #runPasses(): Promise<ReconcileResult> {
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const entry = await readNec(this.#deps, this.#name, this.#memory, this.#stop);
      if (entry === undefined) return this.#handleDeleted();
      const result = await this.#runPass(entry);
      if (result !== undefined) return result;
      this.#stop.throwIfAborted();
    }
    this.#deps.log.error('a node does not settle', { node: this.#name, rounds: MAX_PASSES });
    return { kind: 'again', afterMs: MAX_BLOCKED_MS };
  }

  /** Runs one pass; returns undefined to run another one. */
  async #runPass(entry: NecEntry): Promise<ReconcileResult | undefined> {
    const read = readInput(this.#deps, entry);
    const origin = classifyStatus(this.#deps, this.#memory, entry, read);
    if (origin.kind === 'edited' && origin.waitMs > 0) return retryAfter(origin.waitMs);
    if (origin.kind === 'edited') return await this.#undo(entry, read, origin.status, origin.fields);
    trackIntents(this.#memory, read.status, this.#deps.clock.monotonicMs());
    this.#deps.memory.claimCalls.note(this.#name, read.status);
    if (origin.kind === 'old') return await this.#rebuild(entry, read, origin.why);
    const early = this.#deps.facts.viewOf(this.#name, entry);
    noteContradictions(this.#deps, this.#memory, this.#name, read.status, early);
    const mustDescribe = this.#memory.describe !== undefined;
    const drift = await repairDrift(this.#deps, this.#memory, read, this.#stop);
    const baseline = takeBaseline(this.#deps, this.#memory, read);
    const input = { ...read, ...withConfirmedOffers(read.spec, drift.status, baseline) };
    // A description takes a while, in which other facts change too.
    const facts = mustDescribe ? this.#deps.facts.viewOf(this.#name, entry) : early;
    const plan = planReconcile(this.#deps, this.#memory, input, facts);
    for (const followUp of plan.followUps)
      startCall(this.#deps, this.#memory, followUp.kind, this.#caseOf(entry, plan.status, followUp));
    const allocatable = this.#decideAllocatable(read.status, plan);
    const status = allocatable.status;
    const isChanged = !isSameData(status, read.status) || lacksCloudFinalizer(entry.object, status);
    if (isChanged) return await this.#write(entry, { ...plan, status }, drift, allocatable.write);
    this.#startCalls(entry, plan);
    reportDeletion(this.#deps, this.#memory, entry, status);
    if (plan.claimWaits !== undefined) this.#deps.claimsWait?.(this.#name, plan.claimWaits);
    reportProblems(this.#deps, this.#memory, entry, plan);
    const waits = [plan.waitMs, allocatable.waitMs, drift.afterMs];
    return plan.finished.length > 0 ? undefined : await this.#waitOrEnd(entry, input, plan, waits);
  }

  #decideAllocatable(before: NodeEniConfigStatus, plan: Plan): AllocatableDecision {
    // An object that may be released is not written for this.
    const now = plan.ending.kind === 'released' ? undefined : plan.allocatable;
    const nowMs = this.#deps.clock.monotonicMs();
    return decideAllocatableWrite(before, plan.status, now, this.#memory.allocatableWrite, nowMs);
  }

  async #write(
    entry: NecEntry,
    plan: Plan,
    drift: RepairResult,
    allocatableWrite: AllocatableWrite | undefined,
  ): Promise<ReconcileResult | undefined> {
    let result: WriteResult | undefined;
    try {
      result = await this.#writeStatus(entry, plan.status);
    } finally {
      if (result !== 'written') abandonPlan(this.#deps, this.#name, plan);
      // The repair is not in the object: without it, the next pass would decide on what was to be repaired.
      if (result !== 'written' && drift.repaired !== undefined)
        this.#deps.memory.requestDescribe(this.#name, 'a repair was not written');
    }
    if (result !== 'written') return this.#unwritten(result);
    drift.onWritten?.();
    if (allocatableWrite !== undefined) this.#memory.allocatableWrite = allocatableWrite;
    this.#reportRepairs(entry, plan, drift);
    this.#startCalls(entry, plan);
    return undefined;
  }

  #reportRepairs(entry: NecEntry, { restoredIps = [], refused = [] }: Plan, { repaired }: RepairResult): void {
    for (const text of refused)
      reportRepair(
        this.#deps,
        entry,
        'intent-refused',
        `intent was not recorded by ipamd and is not executed: ${text}`,
      );
    if (restoredIps.length > 0) {
      const text = `status took ${restoredIps.join(', ')}, which live Pods use, out of use: in use again`;
      reportRepair(this.#deps, entry, 'address-in-use', text);
    }
    if (repaired !== undefined) reportRepair(this.#deps, entry, 'drift', `repaired from the cloud: ${repaired}`);
  }

  /** Starts the calls that are recorded now, and forgets those that ended; in the place of some a follow-up runs already. */
  #startCalls(entry: NecEntry, { finished, followUps, sends, status }: Plan): void {
    const followed = new Set(followUps.map(({ intent }) => intent.id));
    for (const id of finished) if (!followed.has(id)) this.#memory.calls.delete(id);
    for (const send of sends) startCall(this.#deps, this.#memory, send.kind, this.#caseOf(entry, status, send));
  }

  /** Ends the reconcile, or waits for a call, when there is nothing to write now. */
  async #waitOrEnd(
    entry: NecEntry,
    input: ReconcileInput,
    plan: Plan,
    waits: readonly (number | undefined)[],
  ): Promise<ReconcileResult | undefined> {
    const running = this.#runningCalls();
    if (running.length < this.#memory.calls.size) return undefined;
    if (running.length > 0) return await this.#waitForCalls(running, waits, blockedMs(plan));
    if (plan.ending.kind === 'released') return await this.#release(entry, input);
    if (plan.ending.kind === 'renewed') return await this.#renew(entry, input);
    return retryAfter(...waits, blockedMs(plan));
  }

  #runningCalls(): readonly RunningCall[] {
    return [...this.#memory.calls.values()].filter((call) => call.outcome === undefined);
  }

  /** Waits until a call ends or something is due; ends when the node is queued again, or the time of a reconcile is over. */
  async #waitForCalls(
    running: readonly RunningCall[],
    waits: readonly (number | undefined)[] = [],
    blocked?: number,
  ): Promise<ReconcileResult | undefined> {
    const leftMs = this.#endMs - this.#deps.clock.monotonicMs();
    if (leftMs <= 0) return retryAfter(CALL_CHECK_MS, ...waits, blocked);
    const due = waits.filter((ms) => ms !== undefined && ms > 0).map(Number);
    const first = await waitForAny(this.#deps, this.#name, running, Math.min(leftMs, ...due), this.#stop);
    return first === 'changed' ? retryAfter(CALL_CHECK_MS) : undefined;
  }

  /** Describes the cloud a last time before the finalizer is removed: what is found is removed first. */
  async #release(entry: NecEntry, input: ReconcileInput): Promise<ReconcileResult | undefined> {
    if (entry.object.metadata.deletionTimestamp === undefined) return DONE;
    const check = await checkBeforeRelease(this.#deps, input, this.#stop);
    if (check.kind === 'wait') return retryAfter(check.ms);
    const object =
      check.kind === 'found' ? withStatus(entry.object, check.status) : withoutFinalizer(entry.object, CLOUD_FINALIZER);
    const result = await writeNec(this.#deps, this.#memory, object, this.#stop);
    if (result !== 'written') return this.#unwritten(result);
    if (check.kind !== 'found') return this.#handleDeleted();
    this.#memory.own.noteWritten(entry.object.metadata.uid ?? '', check.status);
    return undefined;
  }

  /**
   * Lets the object of a node that stays go, with everything left as it is: the next object is filled from the cloud.
   */
  async #renew(entry: NecEntry, { status }: ReconcileInput): Promise<ReconcileResult | undefined> {
    const { beginRenewal } = this.#deps;
    const isStaying = (await beginRenewal?.(this.#name, status.supplyEpoch ?? 0, this.#stop)) ?? true;
    // The watch of Nodes is behind: it shows what became of the node in a moment.
    if (!isStaying) return retryAfter(RENEWAL_RECHECK_MS);
    const object = withoutFinalizer(entry.object, CLOUD_FINALIZER);
    const result = await writeNec(this.#deps, this.#memory, object, this.#stop);
    return result === 'written' ? this.#handleDeleted() : this.#unwritten(result);
  }

  /** Writes the status as ipamd had it, before anything is decided; the next pass describes the cloud. */
  async #undo(
    entry: NecEntry,
    input: ReconcileInput,
    status: NodeEniConfigStatus,
    fields: readonly string[],
  ): Promise<ReconcileResult | undefined> {
    this.#reportFaults(entry, input);
    const result = await this.#writeStatus(entry, status);
    if (result !== 'written') return this.#unwritten(result);
    const text = `another client changed ${fields.join(', ')} of the status, which ipamd alone writes: undone`;
    reportRepair(this.#deps, entry, 'edited', text);
    return undefined;
  }

  /** Rebuilds the status from the cloud, once no own call is in flight that could change the cloud meanwhile. */
  async #rebuild(entry: NecEntry, input: ReconcileInput, why: string): Promise<ReconcileResult | undefined> {
    const running = this.#runningCalls();
    if (running.length > 0) return await this.#waitForCalls(running);
    this.#reportFaults(entry, input);
    const rebuilt = await rebuildRestored(this.#deps, this.#memory, input, why, this.#stop);
    if (rebuilt.kind === 'wait') return retryAfter(rebuilt.ms);
    const result = await this.#writeStatus(entry, rebuilt.status);
    if (result !== 'written') return this.#unwritten(result);
    rebuilt.onWritten();
    this.#memory.calls.clear();
    reportRepair(this.#deps, entry, 'made-anew', `${why}: the status is rebuilt from the cloud`);
    return undefined;
  }

  async #writeStatus(entry: NecEntry, status: NodeEniConfigStatus): Promise<WriteResult> {
    const { uid = '' } = entry.object.metadata;
    this.#memory.own.noteAttempt(uid, status);
    const result = await writeNec(this.#deps, this.#memory, withStatus(entry.object, status), this.#stop);
    if (result === 'written') this.#memory.own.noteWritten(uid, status);
    return result;
  }

  /** Ends the reconcile of an object that is gone, and runs another pass where another client wrote first. */
  #unwritten(result: Exclude<WriteResult, 'written'>): ReconcileResult | undefined {
    if (result === 'gone') return this.#handleDeleted();
    this.#conflicts += 1;
    return this.#conflicts > MAX_CONFLICTS ? retryAfter(1_000) : undefined;
  }

  #handleDeleted(): ReconcileResult {
    this.#deps.memory.remove(this.#name, this.#deps.clock.monotonicMs());
    this.#deps.metrics.problems.reportOfTerm(`supply/${this.#name}`, []);
    return DONE;
  }

  /** Reports why nothing can be read from an object. */
  #reportFaults(entry: NecEntry, { faults: problems }: ReconcileInput): void {
    if (entry.decoded !== undefined) return;
    reportProblems(this.#deps, this.#memory, entry, { problems, ending: { kind: 'idle' } });
  }

  #caseOf(entry: NecEntry, status: NodeEniConfigStatus, { intent, priority, sourceNode }: Plan['sends'][number]) {
    const source = sourceNode === undefined ? {} : { sourceNode };
    return { node: this.#name, uid: entry.object.metadata.uid ?? '', intent, status, priority, ...source };
  }
}

/** Returns the baseline for offers: the state at the first pass after a list. */
function takeBaseline({ listings: count }: NodeDeps, memory: NodeMemory, { spec, status }: ReconcileInput): Baseline {
  const listings = count();
  if (memory.baseline?.listings !== listings) memory.baseline = undefined;
  memory.baseline ??= baselineOf(spec, status, listings);
  return memory.baseline;
}

function blockedMs({ ending }: Plan): number | undefined {
  if (ending.kind !== 'blocked') return undefined;
  return Math.min(ending.afterMs, MAX_BLOCKED_MS);
}

/** Returns the end of a reconcile that is repeated after the shortest of these times; done when there is none. */
function retryAfter(...waits: readonly (number | undefined)[]): ReconcileResult {
  const known = waits.filter((ms) => ms !== undefined);
  if (known.length === 0) return DONE;
  return { kind: 'again', afterMs: Math.max(1, Math.ceil(Math.min(...known))) };
}
