import type { Owner } from '../../../inspection/node/build-owner-index.ts';
import type { Color } from '../../output/color.ts';
import type { Column } from '../../output/render-table.ts';
import type { IpObject } from './ip-names.ts';
import type { Topic } from './render-dump-json.ts';

/** One line of a list. */
export type Row = {
  readonly owner: Owner;
  /** The object as `ip -j -d` prints it, with the table names and the protocol name of tke-eni. */
  readonly object: IpObject;
  readonly family: '4' | '6';
  readonly isInside: boolean;
  /** True for what the kernel creates by itself: shown with --all only. */
  readonly isNoise: boolean;
};

/** Returns the columns of a list. */
export function columnsOf(topic: Topic): readonly Column<Row>[] {
  return COLUMNS[topic];
}

const color = ({ object, owner }: Row): Color | undefined => {
  if (object['protocol'] === 'tke-eni') return 'green';
  return owner.kind === 'kernel' ? 'dim' : undefined;
};

function column(title: string, text: (row: Row) => unknown, more: Partial<Column<Row>> = {}): Column<Row> {
  return {
    title,
    text: (row) => {
      const value = text(row);
      return value === undefined || value === null ? '' : String(value);
    },
    color,
    ...more,
  };
}

const member = (title: string, name: string, more: Partial<Column<Row>> = {}): Column<Row> =>
  column(title, ({ object }) => object[name], more);

/** Returns members of an object as words: 'mtu 1400'. A member that is null or true is printed as its name alone. */
function memberTexts(object: IpObject, names: readonly string[]): readonly string[] {
  return names.flatMap((name) => {
    const value = object[name];
    if (value === undefined || value === false) return [];
    return value === null || value === true ? [name] : [`${name} ${String(value)}`];
  });
}

function list(value: unknown): readonly IpObject[] {
  return Array.isArray(value) ? (value as readonly IpObject[]) : [];
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function via(object: IpObject): string {
  const other = object['via'];
  if (typeof other === 'object' && other !== null && 'host' in other) return String(other.host);
  return object['gateway'] === undefined ? '' : String(object['gateway']);
}

function routeNotes(object: IpObject): string {
  const hops = list(object['nexthops']).map(
    (hop) => `${via(hop) === '' ? '' : `${via(hop)} `}${String(hop['dev'] ?? '')} weight ${String(hop['weight'])}`,
  );
  const metrics = list(object['metrics']).flatMap((each) => memberTexts(each, Object.keys(each)));
  return [
    ...(hops.length === 0 ? [] : [`by ${hops.join(' | ')}`]),
    ...strings(object['flags']),
    ...memberTexts(object, ['from', 'tos', 'nhid', 'expires', 'error']),
    ...metrics,
  ].join(' ');
}

const routeTarget = ({ object, family }: Row): string => {
  const type = String(object['type'] ?? 'unicast');
  const dst = object['dst'] === 'default' && family === '6' ? 'default6' : String(object['dst']);
  return type === 'unicast' ? dst : `${type} ${dst}`;
};

const range = (object: IpObject, name: string): readonly string[] => {
  const [start, end] = [object[`${name}_start`], object[`${name}_end`]];
  return start === undefined ? memberTexts(object, [name]) : [`${name} ${String(start)}-${String(end)}`];
};

const prefixTexts = (object: IpObject, keyword: string, name: string): readonly string[] => {
  const [address, length] = [object[name], object[`${name}len`]];
  return address === undefined
    ? []
    : [`${keyword} ${String(address)}${length === undefined ? '' : `/${String(length)}`}`];
};

function ruleMatch({ object }: Row): string {
  const mask = object['fwmask'];
  const mark = object['fwmark'];
  return [
    ...memberTexts(object, ['not']),
    ...prefixTexts(object, 'from', 'src'),
    ...prefixTexts(object, 'to', 'dst'),
    ...memberTexts(object, ['tos']),
    ...(mark === undefined ? [] : [`fwmark ${String(mark)}${mask === undefined ? '' : `/${String(mask)}`}`]),
    ...memberTexts(object, ['iif', 'iif_detached', 'oif', 'oif_detached', 'l3mdev', 'ipproto', 'tun_id']),
    ...range(object, 'sport'),
    ...range(object, 'dport'),
    ...(object['uid_start'] === undefined
      ? []
      : [`uidrange ${String(object['uid_start'])}-${String(object['uid_end'])}`]),
  ].join(' ');
}

function ruleDoes({ object }: Row): string {
  return [
    ...(object['table'] === undefined ? [] : [`lookup ${String(object['table'])}`]),
    ...memberTexts(object, ['suppress_prefixlen', 'suppress_ifgroup', 'goto', 'unresolved', 'nop']),
    ...(object['action'] === undefined ? [] : [String(object['action'])]),
    ...(object['flow_to'] === undefined
      ? []
      : [`realms ${[object['flow_from'], object['flow_to']].filter((realm) => realm !== undefined).join('/')}`]),
  ].join(' ');
}

const info = (object: IpObject, name: string): unknown => {
  const linkinfo = object['linkinfo'];
  return typeof linkinfo === 'object' && linkinfo !== null ? (linkinfo as IpObject)[name] : undefined;
};

const peer = ({ object }: Row): unknown =>
  object['link'] ?? (object['link_index'] === undefined ? undefined : `if${String(object['link_index'])}`);

const ADDRESS_FLAGS = [
  'deprecated',
  'tentative',
  'dadfailed',
  'nodad',
  'noprefixroute',
  'dynamic',
  'temporary',
  'secondary',
  'metric',
  'protocol',
];

const COLUMNS: Readonly<Record<Topic, readonly Column<Row>[]>> = {
  routes: [
    column('DST', routeTarget),
    column('VIA', ({ object }) => via(object)),
    member('DEV', 'dev'),
    member('TABLE', 'table'),
    member('PROTO', 'protocol'),
    column('SCOPE', ({ object }) => (object['scope'] === 'global' ? '' : object['scope']), { priority: 1 }),
    member('SRC', 'prefsrc', { priority: 3 }),
    member('METRIC', 'metric', { priority: 2, align: 'right' }),
    column('NOTES', ({ object }) => routeNotes(object)),
  ],
  rules: [
    member('PRIO', 'priority', { align: 'right' }),
    column('FAM', ({ family }) => family),
    column('MATCH', ruleMatch),
    column('DOES', ruleDoes),
    member('PROTO', 'protocol', { priority: 1 }),
  ],
  links: [
    member('IDX', 'ifindex', { align: 'right' }),
    member('NAME', 'ifname'),
    column('KIND', ({ object }) => info(object, 'info_kind') ?? object['link_type'], { priority: 5 }),
    member('STATE', 'operstate'),
    member('MTU', 'mtu', { align: 'right' }),
    member('GROUP', 'group', { priority: 6 }),
    member('MAC', 'address', { priority: 4 }),
    member('MASTER', 'master', { priority: 3 }),
    column('PEER', peer, { priority: 2 }),
    column('FLAGS', ({ object }) => strings(object['flags']).join(','), { priority: 1 }),
    member('ALIAS', 'ifalias', { priority: 0 }),
  ],
  addrs: [
    member('DEV', 'dev'),
    column('ADDRESS', ({ object }) => `${String(object['local'])}/${String(object['prefixlen'])}`),
    member('SCOPE', 'scope'),
    member('PEER', 'address', { priority: 4 }),
    member('BROADCAST', 'broadcast', { priority: 2 }),
    column('LABEL', ({ object }) => (object['label'] === object['dev'] ? '' : object['label']), { priority: 1 }),
    column('NOTES', ({ object }) => memberTexts(object, ADDRESS_FLAGS).join(' ')),
  ],
  neigh: [
    member('ADDRESS', 'dst'),
    member('DEV', 'dev'),
    member('MAC', 'lladdr'),
    column('STATE', ({ object }) => strings(object['state']).join(',')),
    member('PROTO', 'protocol', { priority: 1 }),
    column(
      'NOTES',
      ({ object }) => memberTexts(object, ['router', 'proxy', 'managed', 'extern_learn', 'offload']).join(' '),
      {
        priority: 2,
      },
    ),
  ],
};
