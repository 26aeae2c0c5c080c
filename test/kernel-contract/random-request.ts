import type { Request } from '../../netlink/request.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RTN_UNREACHABLE, RTNH_F_ONLINK } from '../../netlink/uapi/rtnetlink.ts';
import type { ContractNetns } from './machine.ts';

const NAMES = ['v0', 'v1', 'v2', 'v3', 'br0'];
const ADDRESSES = {
  4: ['10.0.0.1', '10.0.0.2', '10.0.1.1', '10.1.0.1'],
  6: ['fd00::1', 'fd00::2', 'fd00:1::1'],
} as const;
const PREFIXES = {
  4: ['10.0.0.0/24', '10.0.0.1/32', '10.0.1.0/24', '10.1.0.0/16', '10.9.0.0/16', undefined],
  6: ['fd00::/64', 'fd00::1/128', 'fd00:1::/64', 'fd00:9::/32', undefined],
} as const;
const LENGTHS = { 4: [24, 32, 16], 6: [64, 128] } as const;
const FLAGS = { 4: [0], 6: [2, 0x202, 0] } as const;
const TABLES = [254, 4000, 4001];
const NEIGHBOURS = ['169.254.1.1', 'fe80::1'];

/** A request for one of two namespaces, bound to the namespaces of a machine when it is sent: they are `here` and `there`. */
type RandomRequest = (there: ContractNetns) => Request;

/**
 * Draws a request of those that the product makes, with few names, numbers and addresses, so that they meet. Everything is
 * drawn at once: a request is the same for each machine.
 */
export function drawRequest(random: () => number): RandomRequest {
  const pick = <T>(list: readonly T[]): T => {
    const found = list[Math.floor(random() * list.length)];
    return found as T;
  };
  const maybe = (chance: number): boolean => random() < chance;
  const index = (): number => pick([1, 2, 3, 4, 5, 6, 7]);
  const mac = (): string => `02:00:00:00:00:0${pick([1, 2, 3, 4, 5, 6, 7, 8])}`;
  const family = pick([4, 6] as const);
  const af = family === 4 ? AF_INET : AF_INET6;
  const dst = pick<string | undefined>(PREFIXES[family]);
  const ofDst = { family: af, ...(dst !== undefined && { dst }) };
  const fixed =
    (request: Request): RandomRequest =>
    () =>
      request;

  const draws: readonly (readonly [number, () => RandomRequest])[] = [
    [2, () => drawLink({ pick, maybe, index, mac })],
    [3, () => drawChange({ pick, index, mac })],
    [
      1,
      () =>
        fixed({
          object: 'link',
          verb: 'delete',
          spec: maybe(0.5) ? { ifindex: pick([2, 3, 4, 5, 6, 7]) } : { ifname: pick(NAMES) },
        }),
    ],
    [
      3,
      () => {
        const spec = {
          ifindex: index(),
          address: pick<string>(ADDRESSES[family]),
          prefixlen: pick<number>(LENGTHS[family]),
        };
        return fixed({
          object: 'address',
          verb: pick(['add', 'replace'] as const),
          spec: { ...spec, flags: pick<number>(FLAGS[family]) },
        });
      },
    ],
    [
      1,
      () =>
        fixed({
          object: 'address',
          verb: 'delete',
          spec: {
            ifindex: index(),
            address: pick<string>(ADDRESSES[family]),
            prefixlen: pick<number>(LENGTHS[family]),
          },
        }),
    ],
    [
      5,
      () => {
        const verb = pick(['add', 'replace', 'replace'] as const);
        const base = {
          ...ofDst,
          table: pick(TABLES),
          protocol: pick([84, 4]),
          ...(maybe(0.2) && { priority: pick([5, 2000]) }),
        };
        if (maybe(0.15)) return fixed({ object: 'route', verb, spec: { ...base, type: RTN_UNREACHABLE } });
        const gateways: readonly string[] = family === 4 ? ADDRESSES[4] : [...ADDRESSES[6], 'fe80::1'];
        const hop = {
          oif: index(),
          ...(maybe(0.4) && { gateway: pick(gateways) }),
          ...(maybe(0.15) && { flags: RTNH_F_ONLINK }),
          ...(maybe(0.1) && { prefsrc: pick<string>(ADDRESSES[family]) }),
        };
        return fixed({ object: 'route', verb, spec: { ...base, ...hop } });
      },
    ],
    [
      2,
      () =>
        fixed({
          ...{ object: 'route', verb: 'delete' },
          spec: {
            ...{ ...ofDst, table: pick(TABLES), ...(maybe(0.5) && { protocol: pick([84, 4]) }) },
            ...{ ...(maybe(0.3) && { oif: index() }), ...(maybe(0.2) && { priority: pick([5, 2000, 1024]) }) },
          },
        }),
    ],
    [
      1,
      () => {
        const mark = maybe(0.3) ? { fwmark: pick([1, 2]), ...(maybe(0.5) && { fwmask: 0xff }) } : {};
        const src = maybe(0.4) ? { src: family === 4 ? '10.0.0.1/32' : 'fd00::1/128' } : {};
        const of = { family: af, priority: pick([5, 10, 11]), table: pick([4000, 4001]), protocol: pick([84, 4]) };
        const spec = { ...of, ...src, ...mark, ...(maybe(0.2) && { iifname: pick(NAMES) }) };
        return fixed({ object: 'rule', verb: pick(['add', 'add', 'append'] as const), spec });
      },
    ],
    [
      1,
      () => {
        const of = { family: af, priority: pick([5, 10, 11]), ...(maybe(0.5) && { table: pick([4000, 4001]) }) };
        return fixed({
          object: 'rule',
          verb: 'delete',
          spec: { ...of, ...(maybe(0.3) && { protocol: 84 }), ...(maybe(0.3) && { fwmark: 1 }) },
        });
      },
    ],
    [
      1,
      () =>
        fixed({
          object: 'neigh',
          verb: pick(['add', 'replace'] as const),
          spec: { ifindex: pick([2, 3, 4, 5]), dst: pick(NEIGHBOURS), lladdr: mac() },
        }),
    ],
    [1, () => fixed({ object: 'neigh', verb: 'delete', spec: { ifindex: pick([2, 3, 4, 5]), dst: pick(NEIGHBOURS) } })],
  ];
  return pick(draws.flatMap(([weight, draw]) => Array.from({ length: weight }, () => draw)))();
}

/** A setting that is written, by its place among those that are compared. */
type RandomSetting = { readonly at: number; readonly scope: string; readonly value: string };

/** Draws a setting of a link, of all, or of what comes. */
export function drawSetting(random: () => number, settings: number): RandomSetting {
  const scopes = [...NAMES, 'lo', 'all', 'default'];
  return {
    at: Math.floor(random() * settings),
    scope: scopes[Math.floor(random() * scopes.length)] ?? 'all',
    value: String(Math.floor(random() * 2)),
  };
}

type Draw = {
  pick<T>(list: readonly T[]): T;
  maybe(chance: number): boolean;
  index(): number;
  mac(): string;
};

function drawLink({ pick, maybe, index, mac }: Draw): RandomRequest {
  if (maybe(0.2)) {
    const spec = { kind: 'bridge', ifname: pick(NAMES), address: mac() } as const;
    return () => ({ object: 'link', verb: 'add', spec });
  }
  const spec = {
    kind: 'veth' as const,
    ...{ ifname: pick(NAMES), address: mac(), ...(maybe(0.3) && { mtu: 1400 }) },
    ...{ ...(maybe(0.3) && { group: 7 }), ...(maybe(0.5) && { up: true }), ...(maybe(0.2) && { ifindex: index() }) },
  } as const;
  const peer = { ifname: pick(NAMES), address: mac() };
  const isThere = maybe(0.5);
  return (there) => ({
    ...{ object: 'link', verb: 'add' },
    spec: { ...spec, peer: { ...peer, ...(isThere && { netns: there }) } },
  });
}

function drawChange({ pick, index, mac }: Omit<Draw, 'maybe'>): RandomRequest {
  const ifindex = index();
  const name = pick(NAMES);
  const moves = pick([undefined, undefined, undefined, undefined, undefined, undefined, 'plain', 'renamed'] as const);
  if (moves !== undefined) {
    return (there) => ({
      ...{ object: 'link', verb: 'set' },
      spec: { ifindex, netns: there, ...(moves === 'renamed' && { ifname: name }) },
    });
  }
  const change = pick([
    ...[{ up: true }, { up: true }, { up: true }, { up: false }, { mtu: 1300 }, { group: 9 }, { ifname: name }],
    ...[{ ifalias: 'x' }, { ifalias: '' }, { address: mac() }, { master: 0 }, { master: index() }, { arp: false }],
    ...[{ arp: true }, { promisc: true }, { bridgePort: { mode: 1 } }],
  ]);
  return () => ({ object: 'link', verb: 'set', spec: { ifindex, ...change } });
}
