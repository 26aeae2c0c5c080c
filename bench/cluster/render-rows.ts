import { type BenchRow, benchRow, median } from '../row.ts';
import { type CpuTimes, PROGRAMS } from './cpu-times.ts';
import { PODS_AT_ONCE, type Round } from './fifty.ts';

/** The rounds of one run that count. */
type Rounds = { readonly ours: readonly Round[]; readonly peer: readonly Round[] };

/** What is wanted of the peer's time divided by ours. */
const TARGET = 0.95;

/** Makes the rows `fifty-up` and `fifty-down` of medians; `starts` says what starting the plugins alone takes. */
export function renderRows(rounds: Rounds, starts: string): readonly BenchRow[] {
  return [
    rowOf(rounds, {
      name: 'fifty-up',
      wallS: ({ upS }) => upS,
      cpu: ({ upCpu }) => upCpu,
      sandbox: ['RunPodSandbox', ({ latencies }) => latencies.runMs],
      pluginsMs: ({ latencies }) => latencies.setupMs,
      more: starts,
    }),
    rowOf(rounds, {
      name: 'fifty-down',
      wallS: ({ downS }) => downS,
      cpu: ({ downCpu }) => downCpu,
      sandbox: ['StopPodSandbox', ({ latencies }) => latencies.stopMs],
      pluginsMs: ({ latencies }) => latencies.teardownMs,
      more: 'the kubelet stops each sandbox more than once',
    }),
  ];
}

type Figure = (round: Round) => number;

type RowSpec = {
  readonly name: string;
  readonly wallS: Figure;
  readonly cpu: (round: Round) => CpuTimes;
  /** The CRI call, and its mean. */
  readonly sandbox: readonly [call: string, ms: Figure];
  readonly pluginsMs: Figure;
  readonly more: string;
};

function rowOf({ ours, peer }: Rounds, spec: RowSpec): BenchRow {
  const { name, wallS, cpu, sandbox, pluginsMs, more } = spec;
  const both = (figure: Figure, digits: number) =>
    [ours, peer].map((rounds) => median(rounds.map(figure)).toFixed(digits)).join(' against ');
  const total = (times: CpuTimes) => Object.values(times).reduce((sum, one) => sum + one, 0);
  const row = benchRow({
    suite: 'cluster',
    case: name,
    ours: median(ours.map(wallS)),
    peer: median(peer.map(wallS)),
    peerName: 'ptp + host-local',
    unit: 's',
  });
  const extra = [
    `${PODS_AT_ONCE} Pods on one node, ${ours.length} rounds in turn`,
    `${sandbox[0]} by the kubelet ${both(sandbox[1], 0)} ms, plugins by containerd ${both(pluginsMs, 0)} ms`,
    `CPU of plugins ${both((round) => cpu(round).plugins, 1)} s, of all daemons with them ${both((round) => total(cpu(round)), 1)} s`,
    `more than the peer: ${describeExcess(ours.map(cpu), peer.map(cpu))} s`,
    more,
    `${row.ratio >= TARGET ? 'reaches' : 'misses'} ${TARGET}`,
  ];
  return { ...row, extra: extra.join('; ') };
}

/** Names the programs that took other CPU time than beside the peer: `plugins +1.4, kubelet -0.2`; largest first. */
function describeExcess(ours: readonly CpuTimes[], peer: readonly CpuTimes[]): string {
  return PROGRAMS.map((program) => {
    const [own, other] = [ours, peer].map((rounds) => median(rounds.map((times) => times[program])));
    return { program, seconds: (own ?? 0) - (other ?? 0) };
  })
    .toSorted((a, b) => b.seconds - a.seconds)
    .map(({ program, seconds }) => `${program} ${seconds < 0 ? '' : '+'}${seconds.toFixed(1)}`)
    .join(', ');
}
