import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { LastReports } from '../../kube/reporter.ts';
import type { Clock } from '../../runtime/clock.ts';
import { claimKeysOf } from '../decide/claim-marks.ts';
import type { Intent } from '../decide/decision.ts';
import type { IntentEvaluation } from '../decide/evaluate-intent.ts';
import { findEditedFields } from '../decide/undo-edit.ts';
import type { Baseline } from '../decide/with-confirmed-offers.ts';
import type { AllocatableWrite } from './decide-allocatable-write.ts';
import { OwnState } from './own-state.ts';
import { MAX_DESCRIPTION_AGE_MS, RecentChanges } from './recent-changes.ts';

/** What is done for an intent: its call is sent, its task followed, or its outcome resolved. */
export type CallKind = 'send' | 'follow' | 'resolve';

/** A call that this process makes or made for an intent, until its outcome is in the object. */
export type RunningCall = {
  readonly kind: CallKind;
  /** When it ended: its request was sent before, but after a wait for the rate limit; monotonic milliseconds. */
  endedMs: number | undefined;
  /** Set once the call ended. `repeat`: the intent is to be sent again. */
  outcome: IntentEvaluation | undefined;
  /** Resolves when it ended; never rejects. */
  readonly ended: Promise<void>;
};

/**
 * State of one node that this process has and the object does not contain. Lost with the process; nothing depends on
 * it.
 */
export type NodeMemory = {
  /** True when the result of the last write is unknown: read from the API server, not from the cache. */
  mustRead: boolean;
  /** True while a reconcile of the node runs: it notices itself when a call ends. */
  isReconciling: boolean;
  /** By intent id. */
  readonly calls: Map<string, RunningCall>;
  /** When this leader first read an intent, by its id; monotonic milliseconds. */
  readonly intentSinceMs: Map<string, number>;
  /**
   * How often an own call ended with an unknown outcome, and when it last did; when the last one ended that was sent, by
   * intent id; monotonic milliseconds.
   */
  readonly unclear: Map<
    string,
    { readonly times: number; readonly lastMs: number; readonly sentMs: number | undefined }
  >;
  /** Since when an ENI has been in the object, by its id; monotonic milliseconds. */
  readonly eniSinceMs: Map<string, number>;
  /** Since when an ENI has been Attaching, by its id; monotonic milliseconds. */
  readonly attachingSinceMs: Map<string, number>;
  /** Why the cloud is to be described, and the earliest time; monotonic milliseconds. */
  describe: { readonly why: string; readonly notBeforeMs: number } | undefined;
  /** Until when an own call without an answer, which the object does not contain any more, may have its effect; monotonic milliseconds. */
  lateUntilMs: number;
  /** When a status that was rebuilt as a whole was last written. */
  rebuiltMs: number | undefined;
  /**
   * Differences between object and cloud, and when a description first showed them. They are repaired when a later
   * description shows them too.
   */
  readonly driftSinceMs: Map<string, number>;
  /** State of the object when it was first read since the last list; undefined: taken at the next pass. */
  baseline: Baseline | undefined;
  /** The last status that this leader wrote or found. */
  readonly own: OwnState<NodeEniConfigStatus>;
  /** Addresses of live Pods that no ENI of the object has, as of the last pass. */
  strayIps: ReadonlySet<string>;
  /** Whether the counts of the status were not those of its ENIs at the last pass. */
  isCountWrong: boolean;
  /** What was last reported of the deletion of the object, and when; monotonic milliseconds. */
  reportedDeletion: { readonly text: string; readonly atMs: number } | undefined;
  /** The problems that were reported last, on the object and on the Node. */
  readonly reports: LastReports;
  /** The last write that was made only for the number of allocatable addresses. */
  allocatableWrite: AllocatableWrite | undefined;
};

/** Notes since when intents, ENIs and attaching ENIs exist, and forgets removed ones. */
export function trackIntents(memory: NodeMemory, status: NodeEniConfigStatus, nowMs: number): void {
  const intents = new Set((status.intents ?? []).map((intent) => intent.id));
  const { eniInfos = [] } = status;
  const attaching = new Set(eniInfos.filter((eni) => eni.state === 'Attaching').map((eni) => eni.eniID));
  syncSince(memory.intentSinceMs, intents, nowMs);
  syncSince(memory.eniSinceMs, new Set(eniInfos.map((eni) => eni.eniID)), nowMs);
  syncSince(memory.attachingSinceMs, attaching, nowMs);
  for (const [id, { lastMs }] of memory.unclear) {
    if (intents.has(id)) continue;
    memory.unclear.delete(id);
    noteLate(memory, lastMs);
  }
  for (const [id, call] of memory.calls) {
    // A running call may still change the cloud: the rebuild of a restored object waits for it.
    if (intents.has(id) || call.outcome === undefined) continue;
    // Another client removed it from the object: the next description shows what its call brought.
    memory.calls.delete(id);
    if (mayBeLate(call)) noteLate(memory, call.endedMs ?? nowMs);
    memory.describe = { why: 'a recorded intent was removed', notBeforeMs: nowMs };
  }
}

/** Notes a call that ended with an unknown outcome. */
export function noteUnclear({ unclear }: NodeMemory, id: string, { kind, endedMs }: RunningCall, nowMs: number): void {
  const { times = 0, sentMs } = unclear.get(id) ?? {};
  unclear.set(id, { times: times + 1, lastMs: nowMs, sentMs: kind === 'send' ? endedMs : sentMs });
}

/**
 * Returns since when the effect of an intent may be waited for: when its last own call without an answer ended, for that
 * one waited for the rate limit before it was sent; else when this leader first read it, or began its call.
 */
export function sinceMsOf({ unclear, intentSinceMs }: NodeMemory, id: string): number | undefined {
  return unclear.get(id)?.sentMs ?? intentSinceMs.get(id);
}

/** Reports whether a call may have its effect still. */
function mayBeLate({ outcome }: RunningCall): boolean {
  return outcome === undefined || outcome === 'repeat' || outcome.kind === 'unclear' || outcome.kind === 'accepted';
}

/** Notes a call that the object does not contain any more, and that may have its effect still. */
function noteLate(memory: NodeMemory, sentMs: number): void {
  memory.lateUntilMs = Math.max(memory.lateUntilMs, sentMs + MAX_DESCRIPTION_AGE_MS);
}

function syncSince(since: Map<string, number>, present: ReadonlySet<string>, nowMs: number): void {
  for (const id of since.keys()) if (!present.has(id)) since.delete(id);
  for (const id of present) if (!since.has(id)) since.set(id, nowMs);
}

/** The memory of all nodes; made again with each term of leadership. */
export class NodeMemories {
  #nodes = new Map<string, NodeMemory>();
  /** Of nodes whose object is gone: until when their calls may have their effect; monotonic milliseconds. */
  readonly #lateUntilMs = new Map<string, number>();
  /** Calls for static addresses, of all nodes. */
  readonly claimCalls = new ClaimCalls();
  /** What own calls changed lately, of all nodes, also of those whose object is made again. */
  readonly changes: RecentChanges;
  /** Whether all that the former leader wrote has been read: what differs from then on was written by another client. */
  hasFormerWrites = false;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.changes = new RecentChanges(clock);
  }

  /** Returns the memory of a node; undefined for a node that was never reconciled. */
  find(name: string): NodeMemory | undefined {
    return this.#nodes.get(name);
  }

  /** Returns the memory of a node; empty for a node that was never reconciled. */
  of(name: string): NodeMemory {
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const memory: NodeMemory = {
      mustRead: false,
      isReconciling: false,
      calls: new Map(),
      intentSinceMs: new Map(),
      unclear: new Map(),
      eniSinceMs: new Map(),
      attachingSinceMs: new Map(),
      describe: undefined,
      lateUntilMs: this.#lateUntilMs.get(name) ?? Number.NEGATIVE_INFINITY,
      rebuiltMs: undefined,
      driftSinceMs: new Map(),
      baseline: undefined,
      own: new OwnState((one, other) => findEditedFields(one, other).length === 0),
      strayIps: new Set(),
      isCountWrong: false,
      reportedDeletion: undefined,
      reports: new LastReports(),
      allocatableWrite: undefined,
    };
    this.#nodes.set(name, memory);
    return memory;
  }

  /** Makes the next reconcile of a node describe the cloud and repair the object where it differs. */
  requestDescribe(name: string, why: string): void {
    this.of(name).describe = { why, notBeforeMs: 0 };
  }

  /** Removes a node whose object is deleted. What its calls may still do counts for the next object of the name. */
  remove(name: string, nowMs: number): void {
    const memory = this.of(name);
    for (const call of memory.calls.values()) if (mayBeLate(call)) noteLate(memory, call.endedMs ?? nowMs);
    for (const { lastMs } of memory.unclear.values()) noteLate(memory, lastMs);
    this.#lateUntilMs.set(name, memory.lateUntilMs);
    for (const [other, untilMs] of this.#lateUntilMs) if (untilMs <= nowMs) this.#lateUntilMs.delete(other);
    this.#nodes.delete(name);
    this.claimCalls.remove(name);
  }
}

/**
 * Calls of all nodes for static addresses, recorded or about to be, by claim. The watch of another node's object may be
 * late. These are the decisions of this process, so that two nodes never have a call for one claim in flight at the
 * same time.
 */
class ClaimCalls {
  /** Claims by node. */
  readonly #claims = new Map<string, ReadonlySet<string>>();

  /** Stores the calls that a node's object records, and no others. */
  note(node: string, status: NodeEniConfigStatus): void {
    const keys = (status.intents ?? []).flatMap((intent) => claimKeysOf(intent, status));
    if (keys.length === 0) this.#claims.delete(node);
    else this.#claims.set(node, new Set(keys));
  }

  /** Adds an intent that is about to be recorded. */
  add(node: string, intent: Intent, status: NodeEniConfigStatus): void {
    const keys = claimKeysOf(intent, status);
    if (keys.length > 0) this.#claims.set(node, new Set([...(this.#claims.get(node) ?? []), ...keys]));
  }

  /** Removes a node. */
  remove(node: string): void {
    this.#claims.delete(node);
  }

  /** Lists the claims for which other nodes than this one have a call. */
  ofOthers(node: string): ReadonlySet<string> {
    const others = [...this.#claims].filter(([name]) => name !== node);
    return new Set(others.flatMap(([, keys]) => [...keys]));
  }
}
