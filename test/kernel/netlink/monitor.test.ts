import { spawnSync } from 'node:child_process';
import { inspect } from 'node:util';
import test from 'ava';
import { type Monitor, type MonitorEvent, openMonitorIn } from '../../../netlink/monitor.ts';
import type { Request } from '../../../netlink/request.ts';
import { TestNetns } from './support/test-netns.ts';

/** Far longer than an event needs on a busy machine, and far shorter than the patience of AVA. */
const LONGEST_WAIT_MS = 60_000;

/** Reads until `isLast` holds, or until the monitor ends. @throws Error when it does not hold in time; says what came */
async function readUntil(monitor: Monitor, isLast: (event: MonitorEvent) => boolean): Promise<readonly MonitorEvent[]> {
  const events: MonitorEvent[] = [];
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    monitor.close();
  }, LONGEST_WAIT_MS);
  try {
    for await (const event of monitor) {
      events.push(event);
      if (isLast(event)) {
        return events;
      }
    }
  } finally {
    clearTimeout(timer);
  }
  if (isLate) {
    const came = inspect(events.slice(-5), { depth: 3 });
    throw new Error(`waited ${LONGEST_WAIT_MS} ms for ${isLast}; ${events.length} events came, the last ${came}`);
  }
  return events;
}

/** Runs `nft` in the namespace; one that hangs is killed, and its status is null. */
function nft(host: TestNetns, line: string) {
  return spawnSync('ip', ['netns', 'exec', host.name, 'nft', line], { encoding: 'utf8', timeout: LONGEST_WAIT_MS });
}

test('openMonitorIn: tells links, addresses, routes, rules and neighbours as they change', async (t) => {
  using host = new TestNetns();
  using monitor = openMonitorIn(host.netns, {
    groups: ['link', 'ipv4-ifaddr', 'ipv4-route', 'ipv4-rule', 'ipv6-rule', 'neigh'],
  });
  host.ip('link add v0 type veth peer name v1');
  host.ip('addr add 10.0.0.9/24 dev v0');
  host.ip('link set v0 up');
  host.ip('neigh add 10.0.0.7 lladdr 02:00:00:00:00:01 dev v0');
  host.ip('route add 10.9.0.0/16 via 10.0.0.1 table 4007');
  host.ip('rule add pref 512 lookup 3999');
  host.ip('-6 rule add pref 513 lookup 3999');
  host.ip('rule del pref 512');
  const events = await readUntil(monitor, (event) => event.kind === 'rule' && event.op === 'del');
  const has = (isIt: (event: MonitorEvent) => boolean) => t.true(events.some(isIt), isIt.toString());
  has((event) => event.kind === 'link' && event.op === 'new' && event.message.ifname === 'v0');
  has((event) => event.kind === 'address' && event.message.address === '10.0.0.9');
  has((event) => event.kind === 'neigh' && event.message.lladdr === '02:00:00:00:00:01');
  has((event) => event.kind === 'route' && event.message.table === 4007 && event.portid > 0);
  has((event) => event.kind === 'rule' && event.op === 'new' && event.message.priority === 512);
  has((event) => event.kind === 'rule' && event.message.family === 10 && event.message.priority === 513);
});

test('openMonitorIn: tells an nftables transaction and whose it was', async (t) => {
  using host = new TestNetns();
  using monitor = openMonitorIn(host.netns, { groups: ['nftables'] });
  const run = nft(host, 'add table inet tke_test');
  t.is(run.status, 0, `nft: ${run.error?.message ?? run.stderr}`);
  const events = await readUntil(monitor, () => true);
  t.like(events, [{ kind: 'nftables', process: 'nft' }]);
});

const routes = (oif: number): readonly Request[] =>
  Array.from({ length: 10_000 }, (_, i) => ({
    object: 'route',
    verb: 'add',
    spec: { dst: `10.1.${i >> 8}.${i & 255}/32`, oif, table: 4242 },
  }));

test('openMonitorIn: loses none of 10,000 events with its default buffer', async (t) => {
  using host = new TestNetns();
  const oif = host.addVethPair();
  using monitor = openMonitorIn(host.netns, { groups: ['ipv4-route', 'ipv4-rule'] });
  host.rtnl.execute(routes(oif));
  host.ip('rule add pref 7 lookup 100');
  const events = await readUntil(monitor, ({ kind }) => kind === 'rule');
  t.is(events.filter(({ kind }) => kind === 'route').length, 10_000);
  t.false(events.some(({ kind }) => kind === 'overrun'));
});

test('openMonitorIn: says that events were lost, and goes on', async (t) => {
  using host = new TestNetns();
  const oif = host.addVethPair();
  using monitor = openMonitorIn(host.netns, { groups: ['ipv4-route', 'ipv4-rule'], rcvbufBytes: 8192 });
  host.rtnl.execute(routes(oif));
  const lost = await readUntil(monitor, ({ kind }) => kind === 'overrun');
  t.true(lost.length < 10_000);
  host.ip('rule add pref 7 lookup 100');
  const after = await readUntil(monitor, ({ kind }) => kind === 'rule');
  t.is(after.at(-1)?.kind, 'rule');
});

test('openMonitorIn: gathers events, loses none, and says later ones too', async (t) => {
  using host = new TestNetns();
  const oif = host.addVethPair();
  using monitor = openMonitorIn(host.netns, { groups: ['ipv4-route', 'nftables'], gatherMs: 50 });
  for (const request of routes(oif).slice(0, 100)) host.rtnl.execute([request]);
  nft(host, 'add table ip gathered');
  const first = await readUntil(monitor, ({ kind }) => kind === 'nftables');
  t.is(first.filter(({ kind }) => kind === 'route').length, 100);
  for (const request of routes(oif).slice(100, 200)) host.rtnl.execute([request]);
  let count = 0;
  await readUntil(monitor, () => ++count === 100);
  t.is(count, 100);
});

test('requests: are carried out while signals come in', async (t) => {
  using host = new TestNetns();
  const oif = host.addVethPair();
  using monitor = openMonitorIn(host.netns, { groups: ['ipv4-route'] });
  for (const request of routes(oif).slice(0, 2000)) {
    host.rtnl.execute([request]);
  }
  let count = 0;
  await readUntil(monitor, () => ++count === 2000);
  t.is(host.rtnl.route.list({ family: 2, table: 4242 }).length, 2000);
});

test('openMonitorIn: lets other work have its turn amid a flood of changes', async (t) => {
  using host = new TestNetns();
  const oif = host.addVethPair();
  using monitor = openMonitorIn(host.netns, { groups: ['ipv4-route'] });
  host.rtnl.execute(routes(oif));
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const last = routes(oif).length;
  let seen = 0;
  await readUntil(monitor, (event) => event.kind === 'route' && ++seen === last);
  isOver = true;
  t.true(turns > 10, `${turns} turns of the event loop while ${seen} changes were told`);
});
