/**
 * Measures the netlink layer against iproute2 (and pyroute2 where it is installed): routes and rules in a network
 * namespace of the suite's own. Each contestant does the same steps from the same state, all of them in every round,
 * each round beginning with another one. `ip` is a process for each step, as any program that calls it would pay; what
 * its start alone takes stands in the rows. One round goes unmeasured: the caller is a process that has run for long.
 */
import { type Bed, openBed, timed } from './netlink/bed.ts';
import { breakDown, renderBreakdown } from './netlink/breakdown.ts';
import { type Contestant, ipBatch, ourBatches, ourSingles, type Times } from './netlink/contestants.ts';
import { deleteLinks } from './netlink/deletions.ts';
import { pyroute2Rows } from './netlink/pyroute2.ts';
import { type BenchRow, benchRow, median } from './row.ts';

const SUITE = 'netlink';
const ROUTES = 10_000;
const RULES = 4_000;
const LINKS = 30;
/** A multiple of the number of contestants, so that each begins equally often. */
const ROUNDS = 9;

/** Runs all cases and returns one row each. */
export async function runSuite(): Promise<readonly BenchRow[]> {
  using bed = await openBed(ROUTES);
  return [...iproute2Rows(bed), await deletionRow(bed), ...pyroute2Rows(bed)];
}

/** Most of a deletion is the kernel's wait until no processor uses the link. */
async function deletionRow(bed: Bed): Promise<BenchRow> {
  return benchRow({
    ...{ suite: SUITE, case: 'link-del-thirty', peerName: 'ip -batch', unit: 'ms' },
    ...(await deleteLinks(bed, LINKS)),
    extra: `${LINKS} veth pairs at once`,
  });
}

function iproute2Rows(bed: Bed): readonly BenchRow[] {
  const nothing = bed.batchFile('nothing', []);
  const starts: number[] = [];
  const contestants = [
    contestant(ipBatch(bed, RULES)),
    contestant(ourSingles(bed, RULES)),
    contestant(ourBatches(bed, RULES)),
  ] as const;
  for (let round = -1; round < ROUNDS; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      contestants[(round + 1 + turn) % contestants.length]?.run(round >= 0);
    }
    starts.push(timed(() => bed.ip('-batch', nothing)));
  }
  const [peer, singles, batches] = contestants;
  const extra = `${ROUNDS} rounds; the start of ip alone ${median(starts).toFixed(1)} ms`;
  const parts = breakDown(bed);
  const rate = (name: string, step: keyof Times, ours: typeof peer, more = ''): BenchRow => {
    const count = step.startsWith('rule') ? RULES : ROUTES;
    return benchRow({
      suite: SUITE,
      case: name,
      ours: count / (ours.medianOf(step) / 1000),
      peer: count / (peer.medianOf(step) / 1000),
      peerName: 'ip -batch',
      unit: 'ops/s',
      extra: `${count} per round, ${extra}${more}`,
    });
  };
  return [
    rate('route-add-single', 'route-add', singles, `; each ${renderBreakdown(parts.single)}`),
    rate('route-add-batch', 'route-add', batches, `; each ${renderBreakdown(parts.batch)}`),
    rate('route-del-single', 'route-del', singles),
    rate('route-del-batch', 'route-del', batches),
    rate('rule-add', 'rule-add', batches),
    rate('rule-add-single', 'rule-add', singles),
    rate('rule-del', 'rule-del', batches),
    rate('rule-del-single', 'rule-del', singles),
    benchRow({
      suite: SUITE,
      case: 'route-dump',
      ours: singles.medianOf('route-dump'),
      peer: peer.medianOf('route-dump'),
      peerName: 'ip -j route show',
      unit: 'ms',
      extra: `${ROUTES} routes to objects, ${extra}`,
    }),
  ];
}

/** Keeps what a contestant took in each measured round. */
function contestant(run: Contestant) {
  const rounds: Times[] = [];
  return {
    run(isMeasured: boolean): void {
      const times = run();
      if (isMeasured) {
        rounds.push(times);
      }
    },
    medianOf: (step: keyof Times) => median(rounds.map((times) => times[step])),
  };
}

if (import.meta.main) {
  console.table(await runSuite());
}
