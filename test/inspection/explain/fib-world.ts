import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import type { Flow } from '../../../inspection/explain/flow.ts';

/** Veths of the namespace, each with its other end in it; the last one has no carrier. */
export const LINKS = ['v0', 'v1', 'v2', 'v3'] as const;

const TABLES = [254, 100, 3999, 4003];
/** Where goto rules lead; whether a rule stands there is left to chance. */
const GOTO_TARGETS = [30, 31];

/** What `ip` is told to build, and which packets are asked about. */
export type World = {
  readonly family: 4 | 6;
  readonly rules: readonly string[];
  readonly routes: readonly string[];
  readonly flows: readonly WantedFlow[];
};

/** A packet, with links by name. */
export type WantedFlow = Omit<Flow, 'iif' | 'oif'> & { readonly iif?: string };

const word = fc.constantFrom(0, 1, 2);
const pair = (name: string, value: fc.Arbitrary<string | number | undefined>): fc.Arbitrary<string> =>
  value.map((text) => (text === undefined ? '' : ` ${name} ${text}`));
/** Absent `absent` times as often as there. */
const maybe = <T>(value: fc.Arbitrary<T>, absent = 3): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: absent, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });

/** Few addresses, so that prefixes nest and packets meet them. */
function address(family: 4 | 6): fc.Arbitrary<string> {
  return fc
    .tuple(word, word, word)
    .map((words) => (family === 4 ? `10.${words.join('.')}` : `fd00:${words.join(':')}:0:0:0:${words[2]}`));
}

function prefix(family: 4 | 6): fc.Arbitrary<string> {
  const lengths = family === 4 ? [0, 7, 8, 16, 23, 24, 31, 32] : [0, 15, 16, 32, 47, 64, 127, 128];
  return fc.tuple(address(family), fc.constantFrom(...lengths)).map(([ip, bits]) => truncated(family, ip, bits));
}

/** Host bits are refused in a destination. */
function truncated(family: 4 | 6, ip: string, bits: number): string {
  const width = family === 4 ? 8 : 16;
  const parts = ip.split(family === 4 ? '.' : ':').map((part) => Number.parseInt(part, family === 4 ? 10 : 16));
  const kept = parts.map((part, index) => {
    const left = Math.min(width, Math.max(0, bits - index * width));
    return part & ((2 ** width - 1) << (width - left)) & (2 ** width - 1);
  });
  return `${kept.map((part) => part.toString(family === 4 ? 10 : 16)).join(family === 4 ? '.' : ':')}/${bits}`;
}

function rule(family: 4 | 6): fc.Arbitrary<string> {
  const action = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...TABLES).map((table) => `lookup ${table}`) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom(...TABLES), fc.constantFrom(0, 8, 16, 24))
        .map(([table, length]) => `lookup ${table} suppress_prefixlength ${length}`),
    },
    // With several next hops IPv6 judges the one that a hash of the packet chose: nobody can say which.
    ...(family === 4
      ? [{ weight: 1, arbitrary: fc.constantFrom(...TABLES).map((table) => `lookup ${table} suppress_ifgroup 7`) }]
      : []),
    { weight: 1, arbitrary: fc.constantFrom(...GOTO_TARGETS).map((target) => `goto ${target}`) },
    { weight: 1, arbitrary: fc.constantFrom('nop', 'blackhole', 'unreachable', 'prohibit') },
  );
  const priority = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 10, max: 20 }) },
    { weight: 1, arbitrary: fc.constantFrom(...GOTO_TARGETS) },
  );
  const ports = fc.constantFrom('80', '80-443', '1000-2000');
  return fc
    .tuple(
      fc.constantFrom('', '', '', '', 'not '),
      pair('from', maybe(prefix(family), 2)),
      pair('to', maybe(prefix(family), 2)),
      pair('fwmark', maybe(fc.constantFrom('0x10000/0xff0000', '0x80/0x80', '0x10080', '0x0/0x80'), 2)),
      pair('iif', maybe(fc.constantFrom('lo', 'v0', 'v1', 'gone0'), 4)),
      pair('oif', maybe(fc.constantFrom('v0'), 20)),
      pair('tos', maybe(fc.constantFrom('0x10', '0x08'), 10)),
      pair('ipproto', maybe(fc.constantFrom('tcp', 'udp'), 8)),
      pair('sport', maybe(ports, 12)),
      pair('dport', maybe(ports, 12)),
      pair('uidrange', maybe(fc.constantFrom('0-0', '1000-2000'), 12)),
      priority,
      action,
    )
    .filter(([, , , , , , , , , , , pref, does]) => !does.startsWith('goto') || pref < 30)
    .map(([not, ...rest]) => {
      const does = rest.pop();
      const pref = rest.pop();
      return `rule add ${not}${rest.join('')} pref ${pref} ${does}`;
    });
}

function route(family: 4 | 6): fc.Arbitrary<string> {
  const gateway = family === 4 ? '10.77.0.9' : 'fe80::9';
  const hop = fc
    .tuple(fc.constantFrom(...LINKS), fc.boolean())
    .map(([link, hasGateway]) => (hasGateway ? `via ${gateway} dev ${link} onlink` : `dev ${link}`));
  const hops = fc.tuple(fc.constantFrom(...LINKS), fc.constantFrom(...LINKS)).map(([a, b]) => {
    const hopBy = (link: string, last: number) => `nexthop via ${gateway.slice(0, -1)}${last} dev ${link} onlink`;
    return `${hopBy(a, 8)} ${hopBy(b, 9)}`;
  });
  return fc
    .tuple(
      fc.constantFrom('add', 'add', 'add', 'append'),
      fc.oneof(
        { weight: 6, arbitrary: fc.tuple(fc.constant(''), hop) },
        { weight: 1, arbitrary: fc.tuple(fc.constant(''), hops) },
        {
          weight: 2,
          arbitrary: fc.tuple(fc.constantFrom('blackhole ', 'unreachable ', 'prohibit ', 'throw '), fc.constant('')),
        },
      ),
      prefix(family),
      pair('tos', family === 4 ? maybe(fc.constantFrom('0x10', '0x08'), 6) : fc.constant(undefined)),
      pair('metric', maybe(fc.constantFrom(10, 20), 2)),
      fc.constantFrom(...TABLES),
    )
    .map(([verb, [type, leads], dst, tos, metric, table]) => {
      // A multipath route names its hops last.
      return `route ${verb} ${type}${dst}${tos}${metric} table ${table} ${leads}`;
    });
}

function flow(family: 4 | 6): fc.Arbitrary<WantedFlow> {
  return fc
    .tuple(
      address(family),
      maybe(address(family), 3),
      maybe(fc.constantFrom('v0', 'v1', 'v2'), 1),
      fc.constantFrom(0, 0, 0x10000, 0x80, 0x10080, 0x20000),
      fc.constantFrom(0, 0, 0x10, 0x08),
      fc.constantFrom(6, 17),
      fc.constantFrom(80, 443, 1234),
      fc.constantFrom(80, 443, 1234),
      fc.constantFrom(0, 1000),
    )
    .map(([dst, src, iif, mark, tos, ipProto, sport, dport, uid]) => ({
      family,
      dst,
      mark,
      tos,
      ipProto,
      sport,
      dport,
      ...(iif === undefined
        ? { uid }
        : // Without a source the kernel takes a packet from outside for a martian.
          { iif, src: src ?? (family === 4 ? '10.2.2.2' : 'fd00:2:2:2::2') }),
    }));
}

/** Random rules, routes and packets of one family. */
export function world(family: 4 | 6): fc.Arbitrary<World> {
  return fc.record({
    family: fc.constant(family),
    rules: fc.array(rule(family), { minLength: 1, maxLength: 12 }),
    routes: fc.array(route(family), { minLength: 4, maxLength: 30 }),
    flows: fc.array(flow(family), { minLength: 25, maxLength: 25 }),
  });
}

/** Makes the links of the namespace and the settings under which only rules and routes decide. */
export function buildLinks(netns: string): void {
  const pairs = LINKS.flatMap((link, index) => [
    `link add ${link} type veth peer name p${index}`,
    `link set ${link} up${index === 1 ? ' group 7' : ''}`,
    ...(index === LINKS.length - 1 ? [] : [`link set p${index} up`]),
  ]);
  ipBatch(netns, 4, ['link set lo up', ...pairs, 'address add 10.77.0.1/24 dev v0', 'address add 10.1.1.1/32 dev v1']);
  ipBatch(netns, 6, ['address add fd77::1/64 dev v0 nodad', 'address add fd00:1:1:1::1/128 dev v1 nodad']);
  const conf = [
    'ipv4/ip_forward 1',
    'ipv6/conf/all/forwarding 1',
    ...['all', ...LINKS].flatMap((link) => [`ipv4/conf/${link}/rp_filter 0`, `ipv4/conf/${link}/accept_local 1`]),
  ];
  const script = conf.map((line) => `echo ${line.split(' ')[1]} > /proc/sys/net/${line.split(' ')[0]}`).join('\n');
  spawnSync('ip', ['netns', 'exec', netns, 'sh', '-e'], { input: script });
  awaitCarrier(netns);
}

const MOST_LOOKS = 200;

/** Waits until the kernel has told routes of the carriers: on a busy machine it does so long after the links came up. */
function awaitCarrier(netns: string): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let look = 0; look < MOST_LOOKS; look++) {
    const { stdout } = spawnSync('ip', ['-n', netns, '-j', 'link', 'show', 'type', 'veth'], { encoding: 'utf8' });
    const links: readonly { readonly ifname: string; readonly operstate: string }[] = JSON.parse(stdout);
    const up = new Set(links.filter(({ operstate }) => operstate === 'UP').map(({ ifname }) => ifname));
    if (LINKS.slice(0, -1).every((link) => up.has(link))) return;
    Atomics.wait(pause, 0, 0, 50);
  }
  throw new Error(`${netns}: links have no carrier`);
}

/** Puts a world's rules and routes in the place of those before; what the kernel refuses (doubles) is left out. */
export function buildWorld(netns: string, { family, rules, routes }: World): void {
  ipBatch(netns, family, [
    'rule flush',
    'rule add pref 32766 lookup main',
    ...TABLES.map((table) => `route flush table ${table}`),
  ]);
  // Flushing main took the connected route of v0 with it.
  ipBatch(netns, family, [`route add ${family === 4 ? '10.77.0.0/24' : 'fd77::/64'} dev v0`, ...routes, ...rules]);
}

function ipBatch(netns: string, family: 4 | 6, lines: readonly string[]): void {
  const input = `${lines.join('\n')}\n`;
  const result = spawnSync('ip', ['-n', netns, `-${family}`, '-force', '-batch', '-'], { input, encoding: 'utf8' });
  const strange = result.stderr
    .split('\n')
    .filter((line) =>
      /Error: (argument|either|any valid|an inet|inet)|Command line is not complete|Failed to parse/.test(line),
    );
  if (strange.length > 0) throw new Error(`ip -batch: ${strange.join('; ')}\n${input}`);
}
