import { type NumberNames, readIpNames } from '../../../inspection/node/read-ip-names.ts';
import { resolveHostPath } from '../../../runtime/host-path.ts';
import { readRegularText } from '../../../runtime/read-regular-file.ts';
import type { IpNames } from './ip-names.ts';

/** Names that iproute2 has built in, without its files. @see lib/rt_names.c */
const BUILT_IN: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  rt_tables: { 253: 'default', 254: 'main', 255: 'local' },
  rt_protos: {
    0: 'unspec',
    1: 'redirect',
    2: 'kernel',
    3: 'boot',
    4: 'static',
    8: 'gated',
    9: 'ra',
    10: 'mrt',
    11: 'zebra',
    12: 'bird',
    13: 'dnrouted',
    14: 'xorp',
    15: 'ntk',
    16: 'dhcp',
    18: 'keepalived',
    42: 'babel',
    99: 'openr',
    186: 'bgp',
    187: 'isis',
    188: 'ospf',
    189: 'rip',
    192: 'eigrp',
  },
  rt_scopes: { 0: 'global', 200: 'site', 253: 'link', 254: 'host', 255: 'nowhere' },
  group: { 0: 'default' },
  rt_realms: { 0: 'unknown' },
};

/**
 * Opens the look-up of names as iproute2 on this host prints them.
 * @param linkNames names of the links of the shown namespace
 */
export function openIpNames(hostRoot: string, linkNames: Pick<ReadonlyMap<number, string>, 'get'>): IpNames {
  const lists = new Map<string, NumberNames>();
  const listed = (list: string, read: () => NumberNames): NumberNames => {
    const names = lists.get(list) ?? read();
    lists.set(list, names);
    return names;
  };
  const ofIproute = (list: string) => (number: number) =>
    listed(list, () => readIpNames(hostRoot, list)).get(number) ?? BUILT_IN[list]?.[number] ?? String(number);
  const ofSystem = (path: string, pattern: RegExp, number: number) =>
    listed(path, () => readColumns(hostRoot, path, pattern)).get(number);
  return {
    link: (ifindex) => linkNames.get(ifindex) ?? `if${ifindex}`,
    table: ofIproute('rt_tables'),
    protocol: ofIproute('rt_protos'),
    scope: ofIproute('rt_scopes'),
    group: ofIproute('group'),
    realm: ofIproute('rt_realms'),
    dsfield: (tos) =>
      listed('rt_dsfield', () => readIpNames(hostRoot, 'rt_dsfield')).get(tos) ??
      `0x${tos.toString(16).padStart(2, '0')}`,
    ipProtocol: (number) => ofSystem('/etc/protocols', /^([^#\s]+)\s+(\d+)/, number) ?? `ipproto-${number}`,
  };
}

/** Largest list that is read, bytes: /etc/passwd of a large site. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads lines with a name in the first group of `pattern` and a number in the second. The first name of a number
 * counts.
 */
function readColumns(hostRoot: string, path: string, pattern: RegExp): NumberNames {
  const names = new Map<number, string>();
  let text = '';
  try {
    text = readRegularText(resolveHostPath(hostRoot, path), MAX_BYTES);
  } catch {
    // Without the file numbers are printed.
  }
  for (const line of text.split('\n')) {
    const [, name, number] = pattern.exec(line) ?? [];
    if (name !== undefined && number !== undefined && !names.has(Number(number))) names.set(Number(number), name);
  }
  return names;
}
