import type { RecordedOperationInit, RecorderReplyInit } from '../api/ops-messages.ts';
import { KIND_NUMBER, microseconds, outcomeNumber } from '../recorder/event-message.ts';
import type { FlightRecorder, RecordedEntry } from '../recorder/flight-recorder.ts';
import { textOf } from '../recorder/open-operation-log.ts';

/** Maximum length of a reply's texts: a client accepts messages of up to 4 MiB by default. */
const MAX_CHARS = 3 << 20;

/**
 * Describes the recorded operations of the Pods that `pattern` matches: part of 'namespace/name', an address, or the
 * beginning of a container id; all Pods when empty. Changes nothing.
 */
export function recorderReply(recorder: FlightRecorder, pattern: string): RecorderReplyInit {
  const pods: { readonly pod: string; readonly operations: readonly RecordedOperationInit[] }[] = [];
  let leftOut = 0;
  let chars = 0;
  for (const { pod, entries } of recorder.pods()) {
    if (!matches(pod, entries, pattern)) continue;
    const operations = chars > MAX_CHARS ? [] : entries.map(operationMessage);
    chars += operations.reduce((sum, operation) => sum + charsOf(operation), 0);
    if (operations.length === 0 || (chars > MAX_CHARS && pods.length > 0)) leftOut++;
    else pods.push({ pod, operations });
  }
  return { pods, leftOut, forgotten: recorder.dropped };
}

function matches(pod: string, entries: readonly RecordedEntry[], pattern: string): boolean {
  if (pattern === '' || pod.includes(pattern)) return true;
  return entries.some(
    ({ containerId, lease }) =>
      containerId.startsWith(pattern) || lease?.addresses.some(({ ip }) => ip === pattern) === true,
  );
}

function operationMessage(entry: RecordedEntry): RecordedOperationInit {
  const { kind, containerId, ifName, atMs, durationMs, steps, lease, failure, differences = [] } = entry;
  return {
    ...{ containerId, ifName, atUnixMs: Math.round(atMs), kind: KIND_NUMBER[kind] },
    outcome: outcomeNumber(failure !== undefined || differences.length > 0),
    code: failure?.code ?? 0,
    text: textOf(entry),
    details: failure?.details ?? differences.join('\n'),
    durationUs: microseconds(durationMs),
    ips: lease?.addresses.map(({ ip }) => ip) ?? [],
    eniId: lease?.eniId ?? '',
    link: lease?.hostVeth?.name ?? '',
    steps: steps.map(({ name, ms }) => ({ name, durationUs: microseconds(ms) })),
    operations: entry.kernel.flatMap((render) => render()),
    repeats: entry.repeats ?? 0,
    cause: entry.cause ?? '',
  };
}

function charsOf({ operations = [], text = '', details = '' }: RecordedOperationInit): number {
  return operations.reduce((sum, line) => sum + line.length, text.length + details.length + ENTRY_CHARS);
}

/** Maximum length of an operation without its lines. */
const ENTRY_CHARS = 500;
