import { isObject, type JsonObject, type NetnsView } from '../../sim/support/netns.ts';

/** rtm_protocol of all routes and rules of ours. */
const OURS = '84';

/** A link as `ip -j -d link` tells it. */
type LinkFacts = {
  readonly ifindex: number;
  readonly ifname: string;
  readonly mac: string;
  readonly mtu: number;
  readonly isUp: boolean;
  /** False with IFF_NOARP. */
  readonly hasArp: boolean;
  /** Name of the bridge, bond or VRF that it is in; '' for none. */
  readonly master: string;
  /** Of a port of a bridge. */
  readonly isHairpin: boolean;
  readonly isPromiscuous: boolean;
  readonly kind: string;
  readonly group: string;
  readonly alias: string;
};

/** What a node's kernel holds, told by iproute2 and nft; routes and rules of ours as canonical lines. */
export type KernelFacts = {
  readonly links: readonly LinkFacts[];
  /** `eth1 10.0.1.4/32` */
  readonly addresses: readonly string[];
  /** `3999 10.0.1.6 dev eni…`, `4003 default via 10.0.1.1 dev eth1`, `254 172.20.0.0/26 unreachable`. IPv6 defaults say `default6`. */
  readonly routes: readonly string[];
  /** `4 1536 from all fwmark 0x10000/0xff0000 lookup 4003` */
  readonly rules: readonly string[];
  readonly nft: NftFacts | undefined;
  /** Effective setting by interface: `rpFilter.get('eth1')`. */
  readonly rpFilter: ReadonlyMap<string, number>;
};

/** Our nftables table. */
export type NftFacts = {
  /** Link group and the chain that a line leads it to, one for each line. */
  readonly groups: readonly (readonly [group: number, chain: string])[];
  readonly chains: readonly string[];
  /** Chain -> its rules, each one's statements as JSON text. */
  readonly rules: ReadonlyMap<string, readonly string[]>;
  /** Chain -> what each of its `meta mark set` statements makes of a mark. */
  readonly markStatements: ReadonlyMap<string, readonly ((mark: number) => number)[]>;
};

/** Reads everything that the invariants judge, with five short commands. */
export async function readKernelFacts(node: NetnsView): Promise<KernelFacts> {
  const [links, addresses, routes, rules, nft, rpFilter] = await Promise.all([
    node.ipJson('-N', '-d', 'link'),
    node.ipJson('address'),
    bothFamilies((family) => node.ipJson('-N', '-d', family, 'route', 'show', 'table', 'all')),
    bothFamilies((family) => node.ipJson('-N', family, 'rule')),
    node.nftJson('table', 'inet', 'tke_eni'),
    readRpFilter(node),
  ]);
  return {
    links: links.map(linkOf),
    addresses: addresses.flatMap(addressLines),
    routes: routes.flatMap(([family, route]) => (route['protocol'] === OURS ? [routeLine(family, route)] : [])).sort(),
    rules: rules.flatMap(([family, rule]) => (rule['protocol'] === OURS ? [ruleLine(family, rule)] : [])).sort(),
    nft: nft === undefined ? undefined : nftFacts(nft),
    rpFilter,
  };
}

type OfFamily = readonly ['4' | '6', JsonObject];

async function bothFamilies(
  read: (family: '-4' | '-6') => Promise<readonly JsonObject[]>,
): Promise<readonly OfFamily[]> {
  const [v4, v6] = await Promise.all([read('-4'), read('-6')]);
  return [...v4.map((item): OfFamily => ['4', item]), ...v6.map((item): OfFamily => ['6', item])];
}

function linkOf(link: JsonObject): LinkFacts {
  const info = isObject(link['linkinfo']) ? link['linkinfo'] : {};
  const flags = Array.isArray(link['flags']) ? link['flags'] : [];
  return {
    ifindex: Number(link['ifindex']),
    ifname: String(link['ifname']),
    mac: String(link['address'] ?? ''),
    mtu: Number(link['mtu']),
    isUp: flags.includes('UP'),
    hasArp: !flags.includes('NOARP'),
    master: String(link['master'] ?? ''),
    isHairpin: isObject(info['info_slave_data']) && info['info_slave_data']['hairpin'] === true,
    isPromiscuous: Number(link['promiscuity'] ?? 0) > 0 && flags.includes('PROMISC'),
    kind: String(info['info_kind'] ?? ''),
    // -N says 0 where others say «default».
    group: String(link['group'] ?? '0').replace('default', '0'),
    alias: String(link['ifalias'] ?? ''),
  };
}

function addressLines(link: JsonObject): readonly string[] {
  const infos = Array.isArray(link['addr_info']) ? link['addr_info'].filter(isObject) : [];
  return infos.map((info) => `${String(link['ifname'])} ${String(info['local'])}/${String(info['prefixlen'])}`);
}

function routeLine(family: '4' | '6', route: JsonObject): string {
  const table = String(route['table'] ?? '254').replace('main', '254');
  const dst = route['dst'] === 'default' && family === '6' ? 'default6' : String(route['dst']);
  if (route['type'] !== undefined && !['unicast', '1'].includes(String(route['type'])))
    return `${table} ${dst} ${String(route['type']).replace(/^7$/, 'unreachable')}${besides(route, ROUTE_FIELDS)}`;
  const via = route['gateway'] === undefined ? '' : ` via ${String(route['gateway'])}`;
  return `${table} ${dst}${via} dev ${String(route['dev'])}${besides(route, ROUTE_FIELDS)}`;
}

/** What the kernel prints of each route, and what some routes of ours have. */
const ROUTE_FIELDS = ['type', 'dst', 'gateway', 'dev', 'protocol', 'scope', 'table', 'metric', 'prefsrc', 'error'];
const RULE_FIELDS = ['priority', 'src', 'srclen', 'dst', 'dstlen', 'fwmark', 'fwmask', 'table', 'protocol'];
/** What the kernel says of each route, or of the link that it leads to. */
const STATUS = ['flags=[]', 'flags=["linkdown"]', 'flags=["dead","linkdown"]', 'pref="medium"'];

/** The fields of an object of ours that no plan sets, as ` +name=value`. */
function besides(object: JsonObject, known: readonly string[]): string {
  return Object.entries(object)
    .filter(([name]) => !known.includes(name))
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .filter((field) => !STATUS.includes(field))
    .map((field) => ` +${field}`)
    .join('');
}

function ruleLine(family: '4' | '6', rule: JsonObject): string {
  const to = rule['dst'] === undefined || rule['dst'] === 'all' ? '' : ` to ${withLength(rule, 'dst')}`;
  const mark = rule['fwmark'] === undefined ? '' : ` fwmark ${String(rule['fwmark'])}/${String(rule['fwmask'])}`;
  const table = String(rule['table']).replace('main', '254');
  const rest = besides(rule, RULE_FIELDS);
  return `${family} ${String(rule['priority'])} from ${withLength(rule, 'src')}${to}${mark} lookup ${table}${rest}`;
}

/** iproute2 leaves the length of a whole address out. */
function withLength(rule: JsonObject, end: 'src' | 'dst'): string {
  const length = rule[`${end}len`];
  return length === undefined ? String(rule[end]) : `${String(rule[end])}/${String(length)}`;
}

function nftFacts(objects: readonly JsonObject[]): NftFacts {
  const ofKind = (kind: string) => objects.map((object) => object[kind]).filter(isObject);
  const byChain = [...Map.groupBy(ofKind('rule'), (rule) => String(rule['chain']))];
  const statements = (rule: JsonObject) => (Array.isArray(rule['expr']) ? rule['expr'].filter(isObject) : []);
  return {
    groups: byChain.flatMap(([chain, rules]) =>
      chain === 'prerouting' ? rules.map(statements).flatMap(groupVerdict) : [],
    ),
    chains: ofKind('chain').map((chain) => String(chain['name'])),
    rules: new Map(byChain.map(([chain, rules]) => [chain, rules.map((rule) => JSON.stringify(rule['expr']))])),
    markStatements: new Map(byChain.map(([chain, rules]) => [chain, rules.flatMap(statements).flatMap(markStatement)])),
  };
}

function markStatement(statement: JsonObject): readonly ((mark: number) => number)[] {
  const { mangle } = statement;
  if (!isObject(mangle) || JSON.stringify(mangle['key']) !== '{"meta":{"key":"mark"}}') return [];
  return [(mark) => evaluate(mangle['value'], mark)];
}

/** nft prints `and M or V` with other constants than it was given, so the meaning is judged: `{"|": [{"&": […]}, 65536]}`. */
function evaluate(expression: unknown, mark: number): number {
  if (typeof expression === 'number') return expression;
  if (!isObject(expression)) return Number.NaN;
  if (JSON.stringify(expression['meta']) === '{"key":"mark"}') return mark;
  for (const [operator, operands] of Object.entries(expression)) {
    if (!Array.isArray(operands)) return Number.NaN;
    const [left = Number.NaN, right = Number.NaN] = operands.map((operand: unknown) => evaluate(operand, mark));
    if (operator === '|') return (left | right) >>> 0;
    if (operator === '&') return (left & right) >>> 0;
    if (operator === '^') return (left ^ right) >>> 0;
  }
  return Number.NaN;
}

/** `iifgroup 4007 goto eni_4007`: a match and a verdict. A line without a verdict leads nowhere. */
function groupVerdict([first, ...rest]: readonly JsonObject[]): readonly (readonly [number, string])[] {
  const match = first?.['match'];
  if (!isObject(match) || JSON.stringify(match['left']) !== '{"meta":{"key":"iifgroup"}}') return [];
  const verdict = rest.map((statement) => statement['goto'] ?? statement['jump']).find(isObject);
  return verdict === undefined ? [] : [[Number(match['right']), String(verdict['target'])]];
}

async function readRpFilter(node: NetnsView): Promise<ReadonlyMap<string, number>> {
  const folder = '/proc/sys/net/ipv4/conf';
  // A link that goes or is renamed meanwhile makes grep end with 2; the others are read all the same.
  const { stdout: text } = await node.tryRun(['grep', '-r', '-H', '', '--include=rp_filter', folder]);
  const own = new Map(
    text
      .trim()
      .split('\n')
      .map((line) => {
        const [path = '', value = ''] = line.split(':');
        return [path.slice(folder.length + 1, -'/rp_filter'.length), Number(value)] as const;
      }),
  );
  const all = own.get('all') ?? 0;
  return new Map([...own].map(([ifname, value]) => [ifname, Math.max(all, value)]));
}
