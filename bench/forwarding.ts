import { openPath, type Path, type PathSpec } from './forwarding/path.ts';
import { type BenchRow, benchRow, median } from './row.ts';

type Case = { readonly name: string; readonly spec: PathSpec };

const OURS: readonly Case[] = [
  ...[30, 110, 250, 1000].map(
    (pods): Case => ({ name: `compact-${pods}`, spec: { kind: 'ours', ruleMode: 'compact', pods } }),
  ),
  { name: 'per-pod-250', spec: { kind: 'ours', ruleMode: 'per-pod', pods: 250 } },
];
const TRACKED: Case = { name: 'tracked', spec: { kind: 'plain', isTracked: true } };
/** What policy routing costs by itself: the kernel leaves its shortest way as soon as there is any rule, whoever adds it. */
const IDLE_RULE: Case = { name: 'idle-rule', spec: { kind: 'plain', isTracked: true, hasIdleRule: true } };
const BARE: Case = { name: 'bare', spec: { kind: 'plain', isTracked: false } };

/** Short bursts, one of each path in turn: what else the machine does falls on all alike. */
const ROUNDS = 41;
const BURST_MS = 60;

/**
 * Measures how many packets per second go from a Pod through the node and out of its ENI: 32-byte UDP, one flow, one core. Ours has
 * all on: routes or rules of so many Pods, marks, NodePort marks, anti-spoofing. The peer is the same path with connection tracking
 * and no policy rule at all. Told beside it: the same with one idle rule of somebody else's, which
 * is the most that any design with policy routing can reach, and a bare kernel without connection tracking.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const cases = [BARE, TRACKED, IDLE_RULE, ...OURS];
  const paths = new Map<string, Path>();
  try {
    for (const { name, spec } of cases) {
      console.error(`  laying path ${name}`);
      paths.set(name, await openPath(spec));
    }
    const samples = await measureInTurn(paths);
    return OURS.map(({ name }) => rowOf(name, samples));
  } finally {
    for (const path of paths.values()) await path.close();
  }
}

async function measureInTurn(paths: ReadonlyMap<string, Path>): Promise<ReadonlyMap<string, readonly number[]>> {
  const samples = new Map<string, number[]>([...paths.keys()].map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, path] of paths) {
      const rate = await path.measure(BURST_MS);
      // The first round warms caches and is thrown away.
      if (round >= 0) samples.get(name)?.push(rate);
    }
  }
  return samples;
}

function rowOf(name: string, samples: ReadonlyMap<string, readonly number[]>): BenchRow {
  const rate = (of: string) => median(samples.get(of) ?? []);
  const reading = (of: string) => `${Math.round(rate(of))}/s (ratio ${(rate(name) / rate(of)).toFixed(2)})`;
  return benchRow({
    suite: 'forwarding',
    case: name,
    ours: rate(name),
    peer: rate(TRACKED.name),
    peerName: 'no rules, conntrack',
    unit: 'packets/s',
    extra: `with one idle policy rule ${reading(IDLE_RULE.name)}, bare kernel without conntrack ${reading(BARE.name)}; ${ROUNDS} bursts of ${BURST_MS} ms, in turn`,
  });
}
