import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import { findStrayIps } from '../decide/find-stray-ips.ts';
import { isSameData } from '../decide/same-data.ts';
import { undoEdit } from '../decide/undo-edit.ts';
import { withCounts } from '../decide/with-enis.ts';
import type { NodeDeps, NodeFactsAnswer } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import type { ReconcileInput } from './read-input.ts';

/** A status that was read. `wait`: another client writes again and again; nothing is decided on what it wrote. */
type CheckedStatus =
  | { readonly kind: 'own' }
  | { readonly kind: 'undone'; readonly status: NodeEniConfigStatus; readonly fields: readonly string[] }
  | { readonly kind: 'wait'; readonly ms: number };

/** Two writers of one status do not answer each other faster than this. */
const MIN_UNDO_INTERVAL_MS = 1_000;

/** Notes a status that this leader is about to write. */
export function noteAttempt(memory: NodeMemory, uid: string, status: NodeEniConfigStatus): void {
  memory.own = memory.own?.uid === uid ? { ...memory.own, attempted: status } : undefined;
}

/** Notes a status that this leader wrote. */
export function noteOwn(memory: NodeMemory, uid: string, status: NodeEniConfigStatus): void {
  memory.own = { uid, status, isWritten: true };
}

/**
 * Compares a status with the last one that this leader wrote or found: ipamd is the only writer. What another client
 * changed is undone before anything is decided, and the cloud is described at once. The first status of an object in a
 * term is taken as it is. So is one that differs before this leader has written the object and has read all writes of the
 * former leader: it may be one of them. The cloud is described then, too. Takes ids.
 */
export function checkStatus(
  { clock, ids, memory: memories }: Pick<NodeDeps, 'clock' | 'ids' | 'memory'>,
  memory: NodeMemory,
  { decoded }: NecEntry,
  { uid, status: current, why }: ReconcileInput,
): CheckedStatus {
  const own = memory.own?.uid === uid ? memory.own : undefined;
  // An older status that was restored, or a new object: it is rebuilt from the cloud.
  if (decoded !== undefined && why !== undefined) return { kind: 'own' };
  const isAttempted = own?.attempted !== undefined && isSameData(own.attempted, current);
  const nowMs = clock.monotonicMs();
  const edit = own === undefined || isAttempted ? undefined : undoEdit(own.status, current, ids);
  const mayBeFormer = own?.isWritten === false && !memories.hasFormerWrites;
  if (edit !== undefined && mayBeFormer)
    memory.describe = { why: 'the status differs from what was read first', notBeforeMs: nowMs };
  if (edit === undefined || mayBeFormer) {
    if (decoded !== undefined) memory.own = { uid, status: current, isWritten: isAttempted || own?.isWritten === true };
    return { kind: 'own' };
  }
  const waitMs = (memory.undoneMs ?? Number.NEGATIVE_INFINITY) + MIN_UNDO_INTERVAL_MS - nowMs;
  if (waitMs > 0) return { kind: 'wait', ms: waitMs };
  memory.undoneMs = nowMs;
  memory.describe = { why: 'another client changed the status', notBeforeMs: nowMs };
  return { kind: 'undone', ...edit };
}

/**
 * Makes this pass describe the cloud where the status contradicts itself or the API server: its counts are not those of
 * its ENIs, or a live Pod uses an address that is on none of them. Each such address is a reason once.
 */
export function noteContradictions(
  { clock, log }: NodeDeps,
  memory: NodeMemory,
  name: string,
  status: NodeEniConfigStatus,
  facts: NodeFactsAnswer,
): void {
  const strays = facts.kind === 'known' ? findStrayIps(status, facts.values) : [...memory.strayIps];
  const added = strays.filter((ip) => !memory.strayIps.has(ip));
  const hasRightCounts = withCounts(status) === status;
  const isCountNew = !hasRightCounts && !memory.isCountWrong;
  memory.strayIps = new Set(strays);
  memory.isCountWrong = !hasRightCounts;
  if (added.length === 0 && !isCountNew) return;
  const why = isCountNew ? 'the counts of the status are not those of its ENIs' : 'live Pods use addresses of no ENI';
  log.warn('the status of a node cannot be right', { node: name, why, addresses: added.slice(0, MAX_SHOWN) });
  memory.describe = { why, notBeforeMs: clock.monotonicMs() };
}

/** More of them fill a line of the log without being useful. */
const MAX_SHOWN = 10;
