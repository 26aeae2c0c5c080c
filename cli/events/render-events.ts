import { dateTimeText, latencyText } from '../agent/duration-text.ts';
import { type Column, renderTable } from '../output/render-table.ts';
import type { RenderOptions } from '../pool/render-pool.ts';
import type { EventRow } from './event-row.ts';

/** Renders events, a line each; times are UTC. Pure. */
export function renderEvents(rows: readonly EventRow[], options: RenderOptions): string {
  return renderTable(rows, COLUMNS, options);
}

const COLUMNS: readonly Column<EventRow>[] = [
  { title: 'TIME', text: ({ atMs }) => dateTimeText(atMs) },
  { title: 'FROM', text: ({ source }) => source, priority: 1 },
  { title: 'KIND', text: ({ kind }) => kind },
  { title: 'SUBJECT', text: ({ subject }) => subject },
  {
    title: 'OUTCOME',
    text: ({ isFailure }) => (isFailure ? 'failed' : 'ok'),
    color: ({ isFailure }) => (isFailure ? 'red' : 'green'),
  },
  {
    title: 'TOOK',
    text: ({ durationUs }) => (durationUs === undefined ? '' : latencyText(durationUs)),
    align: 'right',
    priority: 2,
  },
  { title: 'TIMES', text: ({ count }) => (count === undefined ? '' : `${count}`), align: 'right', priority: 0 },
  { title: 'TEXT', text: ({ text }) => text },
];
