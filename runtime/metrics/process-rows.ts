import type { ProcessUsage } from '../process-usage.ts';
import { collected, type MetricRows } from './metric-table.ts';

/** What a program shows of itself; `usage` is absent in tests. */
export type AboutProcess = { readonly release: string; readonly usage?: () => ProcessUsage };

/** The release, and what the process uses. */
export const PROCESS_ROWS = {
  info: collected('info', 'Which release this is.', ['release'], ({ release }) => [[{ release }, 1]]),
  residentMemory: collected('resident_memory_bytes', 'Memory of the process.', [], (it) => it.usage?.().residentBytes),
  heapUsed: collected('heap_used_bytes', "Memory that V8's heap uses.", [], (it) => it.usage?.().heapBytes),
  cpuSeconds: collected('cpu_seconds', 'Processor time that the process used.', [], (it) => it.usage?.().cpuSeconds),
} satisfies MetricRows<AboutProcess>;
