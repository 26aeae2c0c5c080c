import { establishFlows } from './forwarding/flow.ts';
import { measureInTurn, type Rounds, type Samples } from './forwarding/in-turn.ts';
import { egress, egressBatched, ingress, type Measure, roundTrip } from './forwarding/measures.ts';
import { openPath, type Path, type PathSpec } from './forwarding/path.ts';
import { type BenchRow, benchRow, median, quartiles } from './row.ts';

/** A path of ours, and the names of its rows. */
type Case = { readonly name: string; readonly spec: PathSpec; readonly rowName: (measure: string) => string };

const BARE = 'bare';
const TRACKED = 'tracked';
const IDLE_RULE = 'idle-rule';
const PEERS: Readonly<Record<string, PathSpec>> = {
  [BARE]: { kind: 'plain', isTracked: false },
  [TRACKED]: { kind: 'plain', isTracked: true },
  /** What policy routing costs by itself: the kernel leaves its shortest way as soon as there is any rule, whoever adds it. */
  [IDLE_RULE]: { kind: 'plain', isTracked: true, hasIdleRule: true },
};

const ROUNDS: Rounds = { rounds: 31, burstMs: 20 };
const MEASURES = { egress, 'egress-mmsg': egressBatched, ingress, rtt: roundTrip } as const;

/**
 * Measures what forwarding costs: packets per second from a Pod through the node and out of its ENI (one write(2) a packet, and 64
 * packets a sendmmsg(2)), packets per second from the far end to the Pod, and the median round trip. 32-byte UDP, one
 * established flow for each, one core. Ours has all on: routes or rules of so many Pods, marks, NodePort marks,
 * anti-spoofing. The peer is the same path with connection tracking and no policy rule at all.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  return await measureCases([compact(30), compact(1_000), bpf(30), bpf(1_000)], MEASURES);
}

/** Measures a list of our paths beside the peers. */
export async function measureCases<M extends string>(
  cases: readonly Case[],
  measures: Readonly<Record<M, Measure>>,
  suite = 'forwarding',
): Promise<readonly BenchRow[]> {
  const paths = new Map<string, Path>();
  try {
    for (const [name, spec] of [...Object.entries(PEERS), ...cases.map(({ name, spec }) => [name, spec] as const)]) {
      console.error(`  laying path ${name}`);
      paths.set(name, await openPath(spec));
    }
    await establishFlows([...paths.values()].flatMap(({ flows }) => Object.values(flows)));
    for (const [name, { learned }] of paths) {
      if (learned?.() === 0) throw new Error(`path ${name}: the fast path has learned no flow`);
    }
    const samples = await measureInTurn(paths, measures, ROUNDS);
    return cases.flatMap((one) => (Object.keys(measures) as M[]).map((measure) => rowOf(suite, one, measure, samples)));
  } finally {
    for (const path of paths.values()) path.close();
  }
}

/** Our data plane with so many Pods. */
export function compact(pods: number): Case {
  return {
    name: `compact-${pods}`,
    spec: { kind: 'ours', ruleMode: 'compact', pods },
    rowName: (measure) => `${measure}-compact-${pods}`,
  };
}

/** Our data plane with so many Pods, and flows forwarded by the fast path's programs. */
function bpf(pods: number): Case {
  return {
    name: `bpf-${pods}`,
    spec: { kind: 'ours', ruleMode: 'compact', pods, fastPath: 'bpf' },
    rowName: (measure) => `bpf-${measure}${pods === 30 ? '' : `-${pods}`}`,
  };
}

/** Our data plane with two rules for each Pod. */
export function perPod(pods: number): Case {
  return {
    name: `per-pod-${pods}`,
    spec: { kind: 'ours', ruleMode: 'per-pod', pods },
    rowName: (measure) => `${measure}-per-pod-${pods}`,
  };
}

function rowOf<M extends string>(suite: string, { name, rowName }: Case, measure: M, samples: Samples<M>): BenchRow {
  const isTime = measure === 'rtt';
  const of = (path: string) => samples[measure].get(path) ?? [];
  const ratios = (path: string) => {
    const peer = of(path);
    return of(name).map((figure, round) => (isTime ? (peer[round] ?? 0) / figure : figure / (peer[round] ?? 0)));
  };
  const reading = (what: string, path: string) =>
    `${what} ${isTime ? `${median(of(path)).toFixed(2)} us` : `${Math.round(median(of(path)))}/s`} (ratio ${median(ratios(path)).toFixed(2)})`;
  const [low, , high] = quartiles(ratios(TRACKED));
  return benchRow({
    suite,
    case: rowName(measure),
    ours: median(of(name)),
    peer: median(of(TRACKED)),
    peerName: 'no rules, conntrack',
    unit: isTime ? 'us' : 'packets/s',
    extra: `quartiles of the ratio ${low.toFixed(2)}-${high.toFixed(2)}; ${reading('with one idle policy rule', IDLE_RULE)}, ${reading('bare kernel without conntrack', BARE)}; ${ROUNDS.rounds} turns of ${ROUNDS.burstMs} ms`,
  });
}
