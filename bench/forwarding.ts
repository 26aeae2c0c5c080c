import { measureInTurn, type Samples } from './forwarding/in-turn.ts';
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
    const measured = await measureInTurn(paths);
    return OURS.map(({ name }) => rowOf(name, measured));
  } finally {
    for (const path of paths.values()) await path.close();
  }
}

function rowOf(name: string, { samples, how }: Samples): BenchRow {
  const rate = (of: string) => median(samples.get(of) ?? []);
  const reading = (of: string) => `${Math.round(rate(of))}/s (ratio ${(rate(name) / rate(of)).toFixed(2)})`;
  return benchRow({
    suite: 'forwarding',
    case: name,
    ours: rate(name),
    peer: rate(TRACKED.name),
    peerName: 'no rules, conntrack',
    unit: 'packets/s',
    extra: `with one idle policy rule ${reading(IDLE_RULE.name)}, bare kernel without conntrack ${reading(BARE.name)}; ${how}`,
  });
}
