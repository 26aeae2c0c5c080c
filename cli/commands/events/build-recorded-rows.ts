import { EVENT_OUTCOME, type RecordedOperation, type RecorderReply } from '../../../agent/api/ops-messages.ts';
import { eventKindText } from '../watch/describe-agent-event.ts';
import type { EventRow } from './event-row.ts';

/** Builds rows from the content of the flight recorder. */
export function buildRecordedRows({ pods }: RecorderReply): readonly EventRow[] {
  return pods.flatMap(({ pod, operations }) => operations.map((operation) => rowOf(pod, operation)));
}

function rowOf(pod: string, operation: RecordedOperation): EventRow {
  const { atUnixMs, kind, outcome, code, text, details, durationUs, ips, eniId, link, steps, operations } = operation;
  const allocated = [ips.join(','), eniId, link].filter((part) => part !== '').join(' ');
  const failure = [text, details].filter((part) => part !== '').join(': ');
  const texts = [allocated, failure, code === 0 ? '' : `(code ${code})`].filter((part) => part !== '');
  return {
    atMs: atUnixMs,
    source: 'agent',
    kind: eventKindText(kind).toUpperCase(),
    subject: pod,
    isFailure: outcome === EVENT_OUTCOME.EVENT_OUTCOME_FAILED,
    text: texts.join(' '),
    durationUs,
    ...(operation.repeats === 0 ? {} : { count: operation.repeats + 1 }),
    ...(steps.length === 0 ? {} : { steps }),
    ...(operations.length === 0 ? {} : { operations }),
  };
}
