import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';

/** No description is older than this. */
const MAX_DESCRIPTION_AGE_MS = 60_000;

/** Notes since when intents and attaching ENIs exist, and forgets removed ones, and addresses that were removed long ago. */
export function trackIntents(
  { clock }: Pick<NodeDeps, 'clock'>,
  memory: NodeMemory,
  status: NodeEniConfigStatus,
): void {
  const nowMs = clock.monotonicMs();
  const intents = new Set((status.intents ?? []).map((intent) => intent.id));
  const attaching = new Set((status.eniInfos ?? []).filter((eni) => eni.state === 'Attaching').map((eni) => eni.eniID));
  syncSince(memory.intentSinceMs, intents, nowMs);
  syncSince(memory.attachingSinceMs, attaching, nowMs);
  for (const id of memory.unclearMs.keys()) if (!intents.has(id)) memory.unclearMs.delete(id);
  for (const [ip, atMs] of memory.removedIpsMs)
    if (nowMs - atMs > MAX_DESCRIPTION_AGE_MS) memory.removedIpsMs.delete(ip);
  for (const [id, call] of memory.calls) {
    // A running call may still change the cloud: the rebuild of a restored object waits for it.
    if (intents.has(id) || call.outcome === undefined) continue;
    // Another client removed it from the object: the next description shows what its call brought.
    memory.calls.delete(id);
    memory.describe = { why: 'a recorded intent was removed', notBeforeMs: nowMs };
  }
}

function syncSince(since: Map<string, number>, present: ReadonlySet<string>, nowMs: number): void {
  for (const id of since.keys()) if (!present.has(id)) since.delete(id);
  for (const id of present) if (!since.has(id)) since.set(id, nowMs);
}
