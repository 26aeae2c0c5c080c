import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import { findStrayIps } from '../decide/find-stray-ips.ts';
import { undoEdit } from '../decide/undo-edit.ts';
import { withCounts } from '../decide/with-enis.ts';
import type { NodeDeps, NodeFactsAnswer } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import type { ReconcileInput } from './read-input.ts';

/**
 * What the status of a node is that was read. `ours`: this leader or a former one wrote it, or it is read for the first
 * time. `edited`: another client changed it; `status` is without the change, and after `waitMs` it is written, because that
 * client writes again and again. `old`: an older state, or one that cannot be read: it is rebuilt from the cloud.
 */
type StatusOrigin =
  | { readonly kind: 'ours' }
  | {
      readonly kind: 'edited';
      readonly status: NodeEniConfigStatus;
      readonly fields: readonly string[];
      readonly waitMs: number;
    }
  | { readonly kind: 'old'; readonly why: string };

/**
 * Classifies a status by the last one that this leader wrote or found: ipamd is the only writer. What another client changed
 * is undone before anything is decided, and the cloud is described at once. So it is where the last write of a former
 * leader may be what differs. Takes ids.
 */
export function classifyStatus(
  { clock, ids, memory: memories }: Pick<NodeDeps, 'clock' | 'ids' | 'memory'>,
  memory: NodeMemory,
  { decoded }: NecEntry,
  { uid, status, why }: ReconcileInput,
): StatusOrigin {
  // A readable state that is older is no edit: an API server was restored, or the object is a new one.
  if (decoded !== undefined && why !== undefined) return { kind: 'old', why };
  const nowMs = clock.monotonicMs();
  const origin = memory.own.classify(uid, status, nowMs, !memories.hasFormerWrites);
  const undone = origin.kind === 'edited' ? undoEdit(origin.own, status, ids) : undefined;
  if (origin.kind === 'edited' && undone !== undefined) {
    if (origin.waitMs > 0) return { kind: 'edited', ...undone, waitMs: origin.waitMs };
    memory.own.noteUndone(nowMs);
    memory.describe = { why: 'another client changed the status', notBeforeMs: nowMs };
    return { kind: 'edited', ...undone, waitMs: 0 };
  }
  if (origin.kind === 'inherited')
    memory.describe = { why: 'the status differs from what was read first', notBeforeMs: nowMs };
  if (decoded !== undefined) memory.own.take(uid, status);
  return why === undefined ? { kind: 'ours' } : { kind: 'old', why };
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
