import type { ProcessUsage } from '../runtime/process-usage.ts';
import type { MetricFactory } from './metric-factory.ts';

/** Adds the gauges of the release, and of what the process uses. */
export function showProcess(
  factory: MetricFactory,
  { release, usage }: { readonly release: string; readonly usage?: () => ProcessUsage },
): void {
  factory.gauge('info', 'Which release this is.', ['release'], (gauge) => gauge.set({ release }, 1));
  if (usage === undefined) return;
  factory.gauge('resident_memory_bytes', 'Memory of the process.', [], (gauge) => gauge.set(usage().residentBytes));
  factory.gauge('heap_used_bytes', "Memory that V8's heap uses.", [], (gauge) => gauge.set(usage().heapBytes));
  factory.gauge('cpu_seconds', 'Processor time that the process used.', [], (gauge) => gauge.set(usage().cpuSeconds));
}
