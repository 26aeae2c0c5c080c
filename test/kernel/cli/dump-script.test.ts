import { execFileSync, spawnSync } from 'node:child_process';
import test from 'ava';
import { openIpNames } from '../../../cli/commands/dump/open-ip-names.ts';
import { renderIpScript } from '../../../cli/commands/dump/render-ip-script.ts';
import { flowtableText } from '../../../dataplane/fast-path/flowtable.ts';
import { readNetnsFacts } from '../../../inspection/node/read-netns-facts.ts';
import { warmThreadPool } from '../../../netlink/netns.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';
import { openRichNetns } from './rich-netns.ts';

const TOPICS = ['links', 'addrs', 'routes', 'neigh', 'rules'] as const;
/** Duplicate address detection takes a second or two. */
const LONGEST_MS = 30_000;

type Json = Readonly<Record<string, unknown>>;

function scriptOf(netns: TestNetns): string {
  const facts = readNetnsFacts(netns.netns, { sysctls: false });
  const names = openIpNames('/', new Map(facts.links.map(({ ifindex, ifname }) => [ifindex, ifname])));
  return renderIpScript({ ...facts, unfiltered: facts }, names, {
    topics: TOPICS,
    hasStandIns: true,
    isUnfiltered: true,
  });
}

/** What a script makes again, told by iproute2; without stand-ins' other ends and times that are left. */
function stateOf(netns: TestNetns): Readonly<Record<string, readonly string[]>> {
  const addresses = netns.ipJson('address').map(({ ifname, addr_info }) => ({ ifname, addr_info }));
  const dumps = {
    routes: [...netns.ipJson('-4 -d route show table all'), ...netns.ipJson('-6 -d route show table all')],
    rules: [...netns.ipJson('-4 -d rule'), ...netns.ipJson('-6 -d rule')],
    neighs: netns.ipJson('neigh').filter(({ state }) => !['FAILED', 'INCOMPLETE'].includes(String(state))),
    addresses,
  };
  const texts = Object.entries(dumps).map(([what, objects]) => [what, objects.filter(isOurs).map(textOf)] as const);
  // Rules have an order of their own; of the others only what there is counts.
  return Object.fromEntries(texts.map(([what, list]) => [what, what === 'rules' ? list : list.toSorted()]));
}

const isOurs = ({ dev, ifname }: Json): boolean => ![dev, ifname].some((name) => String(name).startsWith('tke-si-'));

const textOf = (object: Json): string =>
  JSON.stringify(object, (name, value: unknown) =>
    /^expires$|_life_time$/.test(name) && typeof value === 'number' && value > 0 && value < 2 ** 32 - 1
      ? 'a time'
      : value,
  );

test('renderIpScript: makes a namespace with something of everything again', async (t) => {
  await warmThreadPool();
  using original = openRichNetns((line) => t.log(line));
  using copy = new TestNetns();
  execFileSync('nsenter', [`--net=/run/netns/${copy.name}`, '--', 'sh'], { input: scriptOf(original), stdio: 'pipe' });
  const startMs = performance.now();
  let [want, got] = [stateOf(original), stateOf(copy)];
  while (JSON.stringify(want) !== JSON.stringify(got) && performance.now() - startMs < LONGEST_MS) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    [want, got] = [stateOf(original), stateOf(copy)];
  }
  t.deepEqual(got, want);
  const [again, first] = [copy, original].map((netns) => scriptOf(netns).split('\n').filter(isLine).toSorted());
  t.deepEqual(again, first);
});

/** Lines that do not tell of the stand-ins themselves, nor of times. */
const isLine = (line: string): boolean =>
  /^(route|rule|neigh|address) /.test(line) && !/expires|_lft/.test(line) && !line.includes('tke-si-');

test('renderIpScript: takes a default rule away that is not there', (t) => {
  using original = new TestNetns();
  original.ip('rule add pref 100 lookup local');
  original.ip('rule del pref 0');
  const script = scriptOf(original);
  t.true(script.includes('rule del pref 0\n'));
  using copy = new TestNetns();
  execFileSync('nsenter', [`--net=/run/netns/${copy.name}`, '--', 'sh'], { input: script, stdio: 'pipe' });
  t.deepEqual(copy.ipJson('rule'), original.ipJson('rule'));
});

test('renderIpScript: a flowtable that cannot be made again takes nothing else with it', (t) => {
  const facts = { links: [], addresses: [], routes: [], rules: [], neighs: [] };
  const flowtable = `${flowtableText([4000]).replace(' hook', ' devices = { not-there }\n  hook')}`;
  const script = renderIpScript({ ...facts, unfiltered: facts }, openIpNames('/', new Map()), {
    ...{ topics: TOPICS, hasStandIns: true, isUnfiltered: false },
    ...{ nft: 'table inet kept {\n chain c {\n }\n}\n', flowtable },
  });
  using copy = new TestNetns();
  const within = ['nsenter', `--net=/run/netns/${copy.name}`, '--'] as const;
  const { status, stderr } = spawnSync(within[0], [...within.slice(1), 'sh'], { input: script, encoding: 'utf8' });
  t.is(status, 0, stderr);
  t.regex(stderr, /the flowtable is left out/);
  const tables = execFileSync(within[0], [...within.slice(1), 'nft', 'list', 'tables'], { encoding: 'utf8' });
  t.is(tables.trim(), 'table inet kept');
});

/** Names of links as the kernel takes them, and whether a line of `ip -batch` can hold them. */
const ODD_NAMES: readonly (readonly [name: string, isMade: boolean])[] = [
  ['-x', true],
  ['dev', true],
  [`a"b'c`, true],
  [`"q`, true],
  ['bs\\', true],
  ['$(reboot)', true],
  ['é', true],
  ['p#q', false],
  [`"'`, false],
  ['\u001b[2J', false],
  ['\udcff\udcfe', false],
  ['é\udcff', false],
];

for (const [name, isMade] of ODD_NAMES) {
  test(`renderIpScript: with a bridge and a veth called ${JSON.stringify(name)} ends well, and makes the rest`, async (t) => {
    await warmThreadPool();
    using original = new TestNetns();
    using copy = new TestNetns();
    const { link, address, route, neigh, rule } = original.rtnl;
    const bridge = link.add({ kind: 'bridge', ifname: name, up: true, ifalias: name });
    const port = link.add({ kind: 'veth', ifname: 'port', up: true, master: bridge, peer: { ifname: 'other' } });
    address.add({ ifindex: bridge, address: '10.9.0.1', prefixlen: 24 });
    route.replace({ dst: '10.8.0.0/16', oif: bridge, table: 4001 });
    route.replace({ dst: '10.7.0.0/16', oif: port, table: 4001, prefsrc: '10.9.0.1' });
    route.replace({ dst: '10.6.0.0/16', oif: port, table: 4001 });
    neigh.replace({ ifindex: bridge, dst: '10.9.0.7', lladdr: '02:00:00:00:00:07' });
    rule.add({ family: 2, iifname: name, priority: 100, table: 4001 });
    const script = scriptOf(original);
    execFileSync('nsenter', [`--net=/run/netns/${copy.name}`, '--', 'sh'], { input: script, stdio: 'pipe' });
    t.is(copy.rtnl.link.get({ ifname: name }) !== undefined, isMade, script);
    const routes = copy.rtnl.route.list({ family: 2, table: 4001 }).map(({ dst }) => dst);
    t.deepEqual(routes.toSorted(), isMade ? ['10.6.0.0/16', '10.7.0.0/16', '10.8.0.0/16'] : ['10.6.0.0/16']);
  });
}

test('renderIpScript: gives other ends names that are free and short enough', async (t) => {
  await warmThreadPool();
  using original = new TestNetns();
  using copy = new TestNetns();
  original.rtnl.link.add({ kind: 'veth', ifname: 'tke-si-8', ifindex: 8, peer: { ifname: 'tke-si-1', ifindex: 9 } });
  original.rtnl.link.add({ kind: 'veth', ifname: 'far', ifindex: 2_000_000_000, peer: { ifname: 'tke-si-9' } });
  execFileSync('nsenter', [`--net=/run/netns/${copy.name}`, '--', 'sh'], { input: scriptOf(original), stdio: 'pipe' });
  const names = copy.rtnl.link.list().map(({ ifname }) => ifname);
  for (const name of ['tke-si-8', 'tke-si-1', 'far', 'tke-si-9']) t.true(names.includes(name), name);
});
