/**
 * Measures the netlink layer against iproute2 (and pyroute2 where it is installed), in turns within one run: routes
 * and rules in a network namespace of the suite's own. The peer's figures include the start of its process, as any
 * program that calls it would pay.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createNetns, deleteNetns, warmThreadPool } from '../netlink/netns.ts';
import type { Request } from '../netlink/request.ts';
import { openRtnetlinkIn, type Rtnetlink } from '../netlink/rtnetlink.ts';
import { AF_INET } from '../netlink/uapi/netlink.ts';
import { type BenchRow, benchRow, median } from './row.ts';

const SUITE = 'netlink';
const ROUTES = 10_000;
const RULES = 4_000;
const ROUNDS = 9;
const TABLE = 100;
const RULE_PRIORITY = 1536;
const RULE_TABLE = 101;
/** pyroute2 needs milliseconds where others need microseconds. */
const PYROUTE2_ROUTES = 2_000;
const PYROUTE2_ROUNDS = 3;

type Bed = { readonly rtnl: Rtnetlink; readonly netns: string; readonly oif: number; readonly folder: string };
type Sample = { readonly ours: number; readonly peer: number };

/** Runs all cases and returns one row each. */
export async function runSuite(): Promise<readonly BenchRow[]> {
  await warmThreadPool();
  const netns = `tke-bench-${randomBytes(4).toString('hex')}`;
  const folder = mkdtempSync(join(tmpdir(), 'tke-bench-'));
  using opened = createNetns(netns);
  try {
    using rtnl = openRtnetlinkIn(opened);
    const oif = rtnl.link.add({ kind: 'veth', ifname: 'bench0', up: true, peer: { ifname: 'bench1' } });
    rtnl.link.set({ ifindex: rtnl.link.get({ ifname: 'bench1' })?.ifindex ?? 0, up: true });
    return measureAll({ rtnl, netns, oif, folder });
  } finally {
    deleteNetns(netns);
    rmSync(folder, { recursive: true, force: true });
  }
}

function measureAll(bed: Bed): readonly BenchRow[] {
  const dsts = Array.from({ length: ROUTES }, (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}/32`);
  const srcs = dsts.slice(0, RULES);
  const adds = batchFile(bed, 'route-add', dsts, (dst) => `route add ${dst} dev bench0 table ${TABLE}`);
  const dels = batchFile(bed, 'route-del', dsts, (dst) => `route del ${dst} dev bench0 table ${TABLE}`);
  const rule = (verb: string) => (src: string) => `rule ${verb} from ${src} pref ${RULE_PRIORITY} lookup ${RULE_TABLE}`;
  const ruleAdds = batchFile(bed, 'rule-add', srcs, rule('add'));
  const ruleDels = batchFile(bed, 'rule-del', srcs, rule('del'));
  const addAll = () => executeOrThrow(bed, routeRequests(dsts, bed.oif, 'add'));
  const deleteAll = () => executeOrThrow(bed, routeRequests(dsts, bed.oif, 'delete'));
  const samples: Record<string, Sample[]> = {};
  const take = (name: string, sample: Sample) => {
    samples[name] ??= [];
    samples[name].push(sample);
  };
  // One round goes unmeasured: the caller is a process that has run for long.
  addAll();
  deleteAll();
  for (const verb of ['add', 'delete'] as const) {
    for (const dst of dsts) {
      bed.rtnl.route[verb]({ dst, oif: bed.oif, table: TABLE });
    }
    eachRule(bed, srcs.slice(0, 1000), verb);
  }
  for (let round = 0; round < ROUNDS; round++) {
    const ipAdd = timed(() => ip(bed, '-batch', adds));
    const dumpPeer = timed(() => ip(bed, '-j', 'route', 'show', 'table', String(TABLE)));
    const ipDel = timed(() => ip(bed, '-batch', dels));
    const addSingle = timed(() => {
      for (const dst of dsts) {
        bed.rtnl.route.add({ dst, oif: bed.oif, table: TABLE });
      }
    });
    const dump = timed(() => expectCount(bed.rtnl.route.list({ family: AF_INET, table: TABLE }).length));
    const delSingle = timed(() => {
      for (const dst of dsts) {
        bed.rtnl.route.delete({ dst, oif: bed.oif, table: TABLE });
      }
    });
    const addBatch = timed(addAll);
    const delBatch = timed(deleteAll);
    take('route-add-single', { ours: addSingle, peer: ipAdd });
    take('route-add-batch', { ours: addBatch, peer: ipAdd });
    take('route-del-single', { ours: delSingle, peer: ipDel });
    take('route-del-batch', { ours: delBatch, peer: ipDel });
    take('route-dump', { ours: dump, peer: dumpPeer });
    const ipRuleAdd = timed(() => ip(bed, '-batch', ruleAdds));
    const ipRuleDel = timed(() => ip(bed, '-batch', ruleDels));
    take('rule-add-single', { ours: timed(() => eachRule(bed, srcs, 'add')), peer: ipRuleAdd });
    take('rule-del-single', { ours: timed(() => eachRule(bed, srcs, 'delete')), peer: ipRuleDel });
    take('rule-add', { ours: timed(() => executeOrThrow(bed, ruleRequests(srcs, 'add'))), peer: ipRuleAdd });
    take('rule-del', { ours: timed(() => executeOrThrow(bed, ruleRequests(srcs, 'delete'))), peer: ipRuleDel });
  }
  const rate = (name: string, count: number) => rateRow(name, samples[name] ?? [], count);
  return [
    rate('route-add-single', ROUTES),
    rate('route-add-batch', ROUTES),
    rate('route-del-single', ROUTES),
    rate('route-del-batch', ROUTES),
    rate('rule-add', RULES),
    rate('rule-add-single', RULES),
    rate('rule-del', RULES),
    rate('rule-del-single', RULES),
    benchRow({
      suite: SUITE,
      case: 'route-dump',
      ours: median((samples['route-dump'] ?? []).map((sample) => sample.ours)),
      peer: median((samples['route-dump'] ?? []).map((sample) => sample.peer)),
      peerName: 'ip -j route show',
      unit: 'ms',
      extra: `${ROUTES} routes to objects, ${ROUNDS} rounds`,
    }),
    ...pyroute2Rows(bed, dsts.slice(0, PYROUTE2_ROUTES)),
  ];
}

function rateRow(name: string, samples: readonly Sample[], count: number): BenchRow {
  return benchRow({
    suite: SUITE,
    case: name,
    ours: count / (median(samples.map((sample) => sample.ours)) / 1000),
    peer: count / (median(samples.map((sample) => sample.peer)) / 1000),
    peerName: 'ip -batch',
    unit: 'ops/s',
    extra: `${count} per round, ${samples.length} rounds`,
  });
}

/** A benchmark of refused requests would be a lie. */
function executeOrThrow(bed: Bed, requests: readonly Request[]): void {
  for (const outcome of bed.rtnl.execute(requests)) {
    if (outcome.kind === 'error') {
      throw outcome.error;
    }
  }
}

function routeRequests(dsts: readonly string[], oif: number, verb: 'add' | 'delete'): readonly Request[] {
  return dsts.map((dst) => ({ object: 'route', verb, spec: { dst, oif, table: TABLE } }));
}

function eachRule(bed: Bed, srcs: readonly string[], verb: 'add' | 'delete'): void {
  for (const src of srcs) {
    bed.rtnl.rule[verb]({ src, priority: RULE_PRIORITY, table: RULE_TABLE });
  }
}

function ruleRequests(srcs: readonly string[], verb: 'add' | 'delete'): readonly Request[] {
  return srcs.map((src) => ({ object: 'rule', verb, spec: { src, priority: RULE_PRIORITY, table: RULE_TABLE } }));
}

/** pyroute2 adds the same routes one by one and lists them; an empty result where it is not installed. */
function pyroute2Rows(bed: Bed, dsts: readonly string[]): readonly BenchRow[] {
  const script = `
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
  const adds: Sample[] = [];
  const dumps: Sample[] = [];
  for (let round = 0; round < PYROUTE2_ROUNDS; round++) {
    const peer = spawnSync('/usr/bin/python3', ['-c', script, bed.netns, String(bed.oif), dsts.join(',')], {
      encoding: 'utf8',
    });
    if (peer.status !== 0) {
      return [];
    }
    const times: { add: number; dump: number } = JSON.parse(peer.stdout);
    const add = timed(() => {
      for (const dst of dsts) {
        bed.rtnl.route.add({ dst, oif: bed.oif, table: TABLE });
      }
    });
    const dump = timed(() => bed.rtnl.route.list({ family: AF_INET, table: TABLE }));
    bed.rtnl.execute(routeRequests(dsts, bed.oif, 'delete'));
    adds.push({ ours: add, peer: times.add });
    dumps.push({ ours: dump, peer: times.dump });
  }
  const row = { suite: SUITE, peerName: 'pyroute2' };
  const ours = (samples: readonly Sample[]) => median(samples.map((sample) => sample.ours));
  const peer = (samples: readonly Sample[]) => median(samples.map((sample) => sample.peer));
  const extra = `${dsts.length} routes, ${PYROUTE2_ROUNDS} rounds, without the start of Python`;
  return [
    benchRow({ ...row, case: 'route-add-pyroute2', ours: ours(adds), peer: peer(adds), unit: 'ms', extra }),
    benchRow({ ...row, case: 'route-dump-pyroute2', ours: ours(dumps), peer: peer(dumps), unit: 'ms', extra }),
  ];
}

function batchFile(bed: Bed, name: string, items: readonly string[], line: (item: string) => string): string {
  const path = join(bed.folder, name);
  writeFileSync(path, `${items.map(line).join('\n')}\n`);
  return path;
}

function ip(bed: Bed, ...args: readonly string[]): void {
  const result = spawnSync('ip', ['-n', bed.netns, ...args], { maxBuffer: 64 << 20 });
  if (result.status !== 0) {
    throw new Error(`ip ${args.join(' ')} failed: ${result.stderr.toString()}`);
  }
}

function expectCount(count: number): void {
  if (count !== ROUTES) {
    throw new Error(`listed ${count} of ${ROUTES} routes`);
  }
}

function timed(run: () => void): number {
  const start = performance.now();
  run();
  return performance.now() - start;
}

if (import.meta.main) {
  console.table(await runSuite());
}
