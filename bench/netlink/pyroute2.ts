import { spawnSync } from 'node:child_process';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import { type BenchRow, benchRow, median } from '../row.ts';
import { type Bed, timed } from './bed.ts';
import { TABLE } from './contestants.ts';

/** pyroute2 needs milliseconds where others need microseconds. */
const ROUTES = 2_000;
const ROUNDS = 3;

const SCRIPT = `
import json, sys, time
from pyroute2 import NetNS
ns = NetNS(sys.argv[1]); oif = int(sys.argv[2]); dsts = sys.argv[3].split(',')
t0 = time.monotonic()
for dst in dsts: ns.route('add', dst=dst, oif=oif, table=${TABLE})
t1 = time.monotonic()
n = len(list(ns.get_routes(table=${TABLE})))
t2 = time.monotonic()
for dst in dsts: ns.route('del', dst=dst, oif=oif, table=${TABLE})
print(json.dumps({'add': (t1 - t0) * 1000, 'dump': (t2 - t1) * 1000, 'n': n}))
ns.close()
`;

type Times = { readonly add: number; readonly dump: number };

/** Adds routes one by one and lists them, as pyroute2 does; an empty result where it is not installed. */
export function pyroute2Rows(bed: Bed): readonly BenchRow[] {
  const dsts = bed.dsts.slice(0, ROUTES);
  const theirs: Times[] = [];
  const ours: Times[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const peer = spawnSync('/usr/bin/python3', ['-c', SCRIPT, bed.netns, String(bed.oif), dsts.join(',')], {
      encoding: 'utf8',
    });
    if (peer.status !== 0) {
      return [];
    }
    theirs.push(JSON.parse(peer.stdout));
    ours.push({
      add: timed(() => {
        for (const dst of dsts) {
          bed.rtnl.route.add({ dst, oif: bed.oif, table: TABLE });
        }
      }),
      dump: timed(() => bed.rtnl.route.list({ family: AF_INET, table: TABLE })),
    });
    for (const dst of dsts) {
      bed.rtnl.route.delete({ dst, oif: bed.oif, table: TABLE });
    }
  }
  const row = (step: keyof Times): BenchRow =>
    benchRow({
      suite: 'netlink',
      case: `route-${step}-pyroute2`,
      ours: median(ours.map((times) => times[step])),
      peer: median(theirs.map((times) => times[step])),
      peerName: 'pyroute2',
      unit: 'ms',
      extra: `${dsts.length} routes, ${ROUNDS} rounds, without the start of Python`,
    });
  return [row('add'), row('dump')];
}
