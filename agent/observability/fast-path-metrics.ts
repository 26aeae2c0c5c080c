import { Counter, Gauge, type Registry } from 'prom-client';

/** Metrics of the fast path. */
export type FastPathMetrics = {
  /** The way in which packets of known flows are forwarded. */
  fastPath(mode: string): void;
  /** All flows ended, because an object of this kind was changed, or by a pass of ours ('repair'). */
  flowsForgotten(kind: string): void;
  /** So many links have its programs, after a pass. */
  fastPathLinks(count: number): void;
};

/** Adds them to the agent's registry. */
export function createFastPathMetrics(registry: Registry): FastPathMetrics {
  const registers = [registry];
  const modes = new Gauge({
    name: 'tke_eni_fast_path',
    help: '1 for the way in which packets of known flows are forwarded: off, flowtable or bpf.',
    labelNames: ['mode'],
    registers,
  });
  const forgotten = new Counter({
    name: 'tke_eni_fast_path_forgotten_total',
    help: 'Times that all flows of the fast path ended because the kernel was changed, by kind of object; repair: by a pass of the agent.',
    labelNames: ['kind'],
    registers,
  });
  const links = new Gauge({
    name: 'tke_eni_fast_path_links',
    help: 'ENIs and links of Pods that have the programs of the fast path (bpf), as of the last pass.',
    registers,
  });
  return {
    fastPath: (mode) => {
      modes.reset();
      modes.set({ mode }, 1);
    },
    flowsForgotten: (kind) => forgotten.inc({ kind }),
    fastPathLinks: (count) => links.set(count),
  };
}
