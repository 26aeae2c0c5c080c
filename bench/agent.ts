import { openAgentCaller } from '../test/support/agent-call.ts';
import { type BenchRow, benchRow, median } from './row.ts';
import { openBenchScene } from './scene.ts';

const PODS = 200;

/**
 * Measures the packaged agent alone: the time that wiring one Pod takes inside it, from its own histogram, and its
 * memory with no Pod, with 200, and after them. There is no peer; the bounds are 3 ms and 100 MiB.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  await using scene = await openBenchScene({ ips: PODS + 4 });
  const rssEmpty = scene.rssMib();
  const caller = openAgentCaller(scene.agent.socketPath);
  const pods = await Promise.all(Array.from({ length: PODS }, () => scene.newPod()));
  const callMs: number[] = [];
  try {
    for (const { containerId, netnsPath } of pods) {
      const startedMs = performance.now();
      const sandbox = { containerId, ifName: 'eth0', netns: netnsPath, podNamespace: 'bench', podName: containerId };
      const reply = await caller.call('add', { plugin: 1, network: 'bench', sandbox });
      callMs.push(performance.now() - startedMs);
      if (reply.attachment === undefined) throw new Error(`ADD failed: ${reply.error?.msg}`);
    }
    const rssFull = scene.rssMib();
    for (const { containerId } of pods) {
      const sandbox = { containerId, ifName: 'eth0', netns: '', podNamespace: 'bench', podName: containerId };
      const reply = await caller.call('del', { plugin: 1, network: 'bench', sandbox });
      if (reply.error !== undefined) throw new Error(`DEL failed: ${reply.error.msg}`);
    }
    const rssAfter = scene.rssMib();
    const phases = phaseMeans(await scene.metrics());
    const wireMs = phases.get('netlink') ?? Number.NaN;
    const all = [...phases].map(([phase, mean]) => `${phase} ${mean.toFixed(2)}`).join(', ');
    const bound = { suite: 'agent', peerName: 'bound' } as const;
    return [
      benchRow({
        ...bound,
        case: 'wire-pod-ms',
        ours: wireMs,
        peer: 3,
        unit: 'ms',
        extra: `mean of ${PODS}; phases in ms: ${all}; whole call from a warm client: median ${median(callMs).toFixed(2)} ms`,
      }),
      benchRow({ ...bound, case: 'rss-0', ours: rssEmpty, peer: 100, unit: 'MiB', extra: 'VmRSS, no Pod' }),
      benchRow({ ...bound, case: 'rss-200', ours: rssFull, peer: 100, unit: 'MiB', extra: 'VmRSS after 200 ADDs' }),
      benchRow({ ...bound, case: 'rss-del', ours: rssAfter, peer: 100, unit: 'MiB', extra: 'VmRSS after their DELs' }),
    ];
  } finally {
    caller.close();
    await Promise.all(pods.map((pod) => pod.remove()));
  }
}

/** Reads the mean of each ADD phase, milliseconds, from the text of /metrics. */
function phaseMeans(text: string): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  const counts = new Map<string, number>();
  const line = /^\w*add_phase\w*?_(sum|count)\{[^}]*phase="(\w+)"[^}]*\} (\S+)$/gm;
  for (const [, kind, phase, value] of text.matchAll(line)) {
    (kind === 'sum' ? sums : counts).set(phase ?? '', Number(value));
  }
  return new Map([...sums].map(([phase, seconds]) => [phase, (seconds * 1000) / (counts.get(phase) ?? Number.NaN)]));
}
