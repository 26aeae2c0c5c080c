import { openAgentCaller } from '../test/support/agent-call.ts';
import { type BenchRow, benchRow, median } from './row.ts';
import { openBenchScene } from './scene.ts';

const PODS = 200;

/**
 * Measures the packaged agent alone: the time that wiring one Pod takes inside it, from its own histogram, and its
 * memory with no Pod, with 200, and after them; then the memory again of one that follows its node's objects in an API
 * server. There is no peer; the bounds are 3 ms and 100 MiB, and 130 MiB with a cluster.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const alone = await measure('file');
  const all = [...alone.phases].map(([phase, mean]) => `${phase} ${mean.toFixed(2)}`).join(', ');
  const bound = { suite: 'agent', peerName: 'bound' } as const;
  return [
    benchRow({
      ...bound,
      case: 'wire-pod-ms',
      ours: alone.phases.get('netlink') ?? Number.NaN,
      peer: 3,
      unit: 'ms',
      extra: `mean of ${PODS}; phases in ms: ${all}; whole call from a warm client: median ${alone.callMs.toFixed(2)} ms`,
    }),
    ...memoryRows('rss', alone, 100),
    ...memoryRows('cluster-rss', await measure('cluster'), 130),
  ];
}

type Measured = {
  readonly rssMib: { readonly empty: number; readonly full: number; readonly after: number };
  /** Median of a call. */
  readonly callMs: number;
  /** Mean milliseconds of each ADD phase. */
  readonly phases: ReadonlyMap<string, number>;
};

function memoryRows(name: string, { rssMib }: Measured, peer: number): readonly BenchRow[] {
  const bound = { suite: 'agent', peerName: 'bound', unit: 'MiB', peer } as const;
  return [
    benchRow({ ...bound, case: `${name}-0`, ours: rssMib.empty, extra: 'VmRSS, no Pod' }),
    benchRow({ ...bound, case: `${name}-200`, ours: rssMib.full, extra: 'VmRSS after 200 ADDs' }),
    benchRow({ ...bound, case: `${name}-del`, ours: rssMib.after, extra: 'VmRSS after their DELs' }),
  ];
}

async function measure(source: 'file' | 'cluster'): Promise<Measured> {
  await using scene = await openBenchScene({ ips: PODS + 4, source });
  const empty = scene.rssMib();
  const caller = openAgentCaller(scene.agent.socketPath);
  const pods = await Promise.all(Array.from({ length: PODS }, () => scene.newPod()));
  const callMs: number[] = [];
  try {
    for (const { containerId, netnsPath } of pods) {
      const podName = containerId.slice(0, 12);
      await scene.addPod(podName);
      const startedMs = performance.now();
      const sandbox = { containerId, ifName: 'eth0', netns: netnsPath, podNamespace: 'default', podName };
      const reply = await caller.call('add', { plugin: 1, network: 'bench', sandbox });
      callMs.push(performance.now() - startedMs);
      if (reply.attachment === undefined) throw new Error(`ADD failed: ${reply.error?.msg}`);
    }
    const full = scene.rssMib();
    for (const { containerId } of pods) {
      const podName = containerId.slice(0, 12);
      const sandbox = { containerId, ifName: 'eth0', netns: '', podNamespace: 'default', podName };
      const reply = await caller.call('del', { plugin: 1, network: 'bench', sandbox });
      if (reply.error !== undefined) throw new Error(`DEL failed: ${reply.error.msg}`);
    }
    const after = scene.rssMib();
    const phases = phaseMeans(await scene.metrics());
    return { rssMib: { empty, full, after }, callMs: median(callMs), phases };
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
