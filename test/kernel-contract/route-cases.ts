import type { NetlinkError } from '../../netlink/netlink-error.ts';
import type { Request } from '../../netlink/request.ts';
import type { RouteSpec } from '../../netlink/route-message.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RTN_BLACKHOLE, RTN_UNREACHABLE, RTNH_F_ONLINK } from '../../netlink/uapi/rtnetlink.ts';
import { disableIpv6 } from '../../sysctl/sysctl-key.ts';
import { addUpPair } from './address-cases.ts';
import { type ContractCase, codeOf } from './contract-case.ts';
import type { ContractNetns } from './machine.ts';

/** AF_DECnet: gone from Linux 6.1, and nowhere loaded before. */
const AF_MISSING = 12;

const TABLE = 4007;
const LAST = 0xffff_ffff;

const listed = ({ rtnetlink }: ContractNetns, family: number, table = TABLE) =>
  rtnetlink.route
    .list({ family, table })
    .map(({ dst, gateway, oif, type, priority, protocol }) => ({ dst, gateway, oif, type, priority, protocol }));

const brief = ({ rtnetlink }: ContractNetns, family: number, table = TABLE) =>
  rtnetlink.route.list({ family, table }).map(({ dst = 'default', priority = 0 }) => `${dst} ${priority}`);

/** Routes: what the plans write, and what the kernel answers. */
export const ROUTE_CASES: readonly ContractCase[] = [
  {
    what: 'a route is what table, destination and metric are; one that is there is replaced, not added',
    run({ host }) {
      const oif = addUpPair(host);
      const { route } = host.rtnetlink;
      const base = { dst: '10.1.0.0/16', oif, table: TABLE, protocol: 84 };
      const codes = [
        codeOf(() => route.add(base)),
        codeOf(() => route.add(base)),
        codeOf(() => route.add({ ...base, oif: 2, protocol: 85 })),
        codeOf(() => route.add({ ...base, priority: 7 })),
        codeOf(() => route.add({ ...base, table: 4008 })),
        codeOf(() => route.replace({ ...base, oif: 2 })),
        codeOf(() => route.replace({ ...base, oif: 2 })),
      ];
      return [codes, listed(host, AF_INET), listed(host, AF_INET, 4008).length];
    },
    sees: [
      ['ok', 'EEXIST', 'EEXIST', 'ok', 'ok', 'ok', 'ok'],
      [
        { dst: '10.1.0.0/16', gateway: undefined, oif: 2, type: 1, priority: undefined, protocol: 84 },
        { dst: '10.1.0.0/16', gateway: undefined, oif: 3, type: 1, priority: 7, protocol: 84 },
      ],
      1,
    ],
  },
  {
    what: 'the same of IPv6, where a route without a metric has one',
    run({ host }) {
      const oif = addUpPair(host);
      const { route } = host.rtnetlink;
      const base = { dst: 'fd01::/64', oif, table: TABLE, protocol: 84 };
      const codes = [
        codeOf(() => route.add(base)),
        codeOf(() => route.add({ ...base, oif: 2, protocol: 85 })),
        codeOf(() => route.replace({ ...base, gateway: 'fe80::1' })),
        codeOf(() => route.add({ ...base, priority: 7 })),
      ];
      return [codes, listed(host, AF_INET6)];
    },
    sees: [
      ['ok', 'EEXIST', 'ok', 'ok'],
      [
        { dst: 'fd01::/64', gateway: undefined, oif: 3, type: 1, priority: 7, protocol: 84 },
        { dst: 'fd01::/64', gateway: 'fe80::1', oif: 3, type: 1, priority: 1024, protocol: 84 },
      ],
    ],
  },
  {
    what: 'a table is listed by address, longer prefixes of IPv4 first, those inside of IPv6 first',
    run({ host }) {
      const oif = addUpPair(host);
      const { route } = host.rtnetlink;
      for (const dst of [undefined, '10.2.0.0/16', '10.1.0.0/16', '10.1.0.0/24', '10.1.0.5/32'])
        route.add({ family: AF_INET, ...(dst && { dst }), oif, table: TABLE });
      for (const dst of [undefined, 'fd02::/16', 'fd01::/32', 'fd01::/64', 'fd01::5/128'])
        route.add({ family: AF_INET6, ...(dst && { dst }), oif, table: TABLE });
      return [brief(host, AF_INET), brief(host, AF_INET6)];
    },
    sees: [
      ['default 0', '10.1.0.0/24 0', '10.1.0.0/16 0', '10.1.0.5/32 0', '10.2.0.0/16 0'],
      ['fd01::5/128 1024', 'fd01::/64 1024', 'fd01::/32 1024', 'fd02::/16 1024', 'default 1024'],
    ],
  },
  {
    what: 'what the kernel refuses of a route',
    run({ host }) {
      const oif = addUpPair(host);
      const down = host.rtnetlink.link.add({ kind: 'veth', ifname: 'd0', peer: { ifname: 'd1' } });
      const { route, address } = host.rtnetlink;
      address.add({ ifindex: oif, address: '10.0.0.9', prefixlen: 24 });
      const add = (spec: RouteSpec) => codeOf(() => route.add({ table: TABLE, ...spec }));
      return {
        link: [add({ dst: '10.1.0.0/16', oif: 999 }), add({ dst: 'fd01::/64', oif: 999 })],
        down: [add({ dst: '10.1.0.0/16', oif: down }), add({ dst: 'fd01::/64', oif: down })],
        onlinkDown: [
          add({ dst: '10.1.0.0/16', oif: down, gateway: '10.0.0.1', flags: RTNH_F_ONLINK }),
          add({ dst: 'fd01::/64', oif: down, gateway: 'fd02::1', flags: RTNH_F_ONLINK }),
        ],
        gateway: [
          add({ dst: '10.1.0.0/16', oif, gateway: '192.0.2.1' }),
          add({ dst: 'fd01::/64', oif, gateway: 'fd02::1' }),
          add({ dst: '10.1.0.0/16', oif: 2, gateway: '10.0.0.1' }),
          add({ dst: '10.1.0.0/16', oif, gateway: '10.0.0.1' }),
          add({ dst: '10.2.0.0/16', oif, gateway: '192.0.2.1', flags: RTNH_F_ONLINK }),
          add({ dst: '10.3.0.0/16', oif, gateway: '10.0.0.9' }),
        ],
        source: [
          add({ dst: '10.4.0.0/16', oif, prefsrc: '192.0.2.1' }),
          add({ dst: '10.4.0.0/16', oif, prefsrc: '10.0.0.9' }),
        ],
        prefix: add({ dst: '10.5.0.1/16', oif }),
      };
    },
    sees: {
      ...{ link: ['ENODEV', 'ENODEV'], down: ['ENETDOWN', 'ENETDOWN'], onlinkDown: ['ENETDOWN', 'ENETDOWN'] },
      gateway: ['ENETUNREACH', 'EHOSTUNREACH', 'ENETUNREACH', 'ok', 'ok', 'ok'],
      ...{ source: ['EINVAL', 'ok'], prefix: 'EINVAL' },
    },
  },
  {
    what: 'a gateway is found by a route of the same table',
    run({ host }) {
      const oif = addUpPair(host);
      const { route, link } = host.rtnetlink;
      link.set({ ifindex: 1, up: true });
      const default4 = { family: AF_INET, gateway: '10.7.0.1', oif, table: TABLE, protocol: 84 };
      const default6 = { family: AF_INET6, gateway: 'fd07::1', oif, table: TABLE, protocol: 84 };
      const before = [default4, default6].map((spec) => codeOf(() => route.add(spec)));
      route.add({ dst: '10.7.0.1/32', oif, table: TABLE, protocol: 84 });
      route.add({ dst: 'fd07::1/128', oif, table: TABLE, protocol: 84 });
      return [before, [default4, default6].map((spec) => codeOf(() => route.add(spec))), brief(host, AF_INET)];
    },
    sees: [
      ['ENETUNREACH', 'EHOSTUNREACH'],
      ['ok', 'ok'],
      ['default 0', '10.7.0.1/32 0'],
    ],
  },
  {
    what: 'a route is deleted by what is named of it, the first that fits',
    run({ host }) {
      const oif = addUpPair(host);
      const { route } = host.rtnetlink;
      const base = { dst: '10.1.0.0/16', oif, table: TABLE, protocol: 84 };
      route.add(base);
      route.add({ ...base, priority: 7 });
      const remove = (spec: RouteSpec) => codeOf(() => route.delete(spec));
      const wrong = [
        remove({ ...base, protocol: 85 }),
        remove({ ...base, oif: 2 }),
        remove({ ...base, priority: 8 }),
        remove({ ...base, table: 4008 }),
        remove({ ...base, dst: '10.1.0.0/24' }),
        remove({ ...base, type: RTN_UNREACHABLE }),
      ];
      const right = [remove({ dst: '10.1.0.0/16', table: TABLE }), brief(host, AF_INET), remove(base), remove(base)];
      const none = [remove({ family: AF_INET6, table: 4099 }), remove({ dst: 'fd01::/64', table: TABLE })];
      return { wrong, right, none };
    },
    sees: {
      wrong: ['ESRCH', 'ESRCH', 'ESRCH', 'ESRCH', 'ESRCH', 'ESRCH'],
      right: ['ok', ['10.1.0.0/16 7'], 'ok', 'ESRCH'],
      none: ['ESRCH', 'ESRCH'],
    },
  },
  {
    what: 'the default route of an IPv6 table without one is not there in another way',
    run({ host }) {
      const oif = addUpPair(host);
      host.rtnetlink.route.add({ dst: 'fd01::/64', oif, table: TABLE, protocol: 84 });
      return [
        codeOf(() => host.rtnetlink.route.delete({ family: AF_INET6, table: TABLE })),
        codeOf(() => host.rtnetlink.route.delete({ family: AF_INET6, table: TABLE, protocol: 84 })),
      ];
    },
    sees: ['ENOENT', 'ESRCH'],
  },
  {
    what: 'a route that refuses stands behind one that leads, and outlives its link',
    run({ host }) {
      const oif = addUpPair(host);
      const { route, rule, link } = host.rtnetlink;
      for (const family of [AF_INET, AF_INET6]) {
        rule.add({ family, priority: 512, table: TABLE, protocol: 84 });
        route.add({ family, type: RTN_UNREACHABLE, priority: LAST, table: TABLE, protocol: 84 });
        route.add({ family, oif, table: TABLE, protocol: 84 });
      }
      const ways = () => ['192.0.2.1', 'fd09::1'].map((dst) => codeOf(() => route.get({ dst })));
      const leads = [ways(), brief(host, AF_INET), brief(host, AF_INET6)];
      link.set({ ifindex: oif, up: false });
      const refuses = [ways(), brief(host, AF_INET), brief(host, AF_INET6)];
      link.delete({ ifindex: oif });
      return { leads, refuses, after: [ways(), brief(host, AF_INET), brief(host, AF_INET6)] };
    },
    sees: {
      leads: [
        ['ok', 'ok'],
        ['default 0', `default ${LAST}`],
        ['default 1024', `default ${LAST}`],
      ],
      refuses: [['EHOSTUNREACH', 'EHOSTUNREACH'], [`default ${LAST}`], [`default ${LAST}`]],
      after: [['EHOSTUNREACH', 'EHOSTUNREACH'], [`default ${LAST}`], [`default ${LAST}`]],
    },
  },
  {
    what: 'IPv6 routes that refuse go when the loopback goes down or may not have IPv6',
    run({ host }) {
      const { route, link } = host.rtnetlink;
      const add = () => route.add({ family: AF_INET6, type: RTN_UNREACHABLE, table: TABLE, protocol: 84 });
      const count = () => route.list({ family: AF_INET6, table: TABLE }).length;
      link.set({ ifindex: 1, up: true });
      add();
      const added = count();
      link.set({ ifindex: 1, up: false });
      const down = count();
      add();
      host.sysctl.set(disableIpv6('lo'), '1');
      const disabled = count();
      add();
      // It is without IPv6 already.
      host.sysctl.set(disableIpv6('all'), '1');
      return [added, down, disabled, count()];
    },
    sees: [1, 0, 0, 1],
  },
  {
    what: 'a packet takes the first rule that has a route for it, of its table the longest prefix',
    run({ host }) {
      const oif = addUpPair(host);
      const { route, rule, address } = host.rtnetlink;
      address.add({ ifindex: oif, address: '10.0.0.9', prefixlen: 24 });
      route.add({ dst: '10.1.0.5/32', oif: 2, table: 3999, protocol: 84 });
      route.add({ family: AF_INET, oif, gateway: '10.0.0.1', table: TABLE, protocol: 84 });
      route.add({ dst: '10.8.0.0/16', type: RTN_BLACKHOLE, table: TABLE });
      rule.add({ family: AF_INET, priority: 512, table: 3999, protocol: 84 });
      rule.add({ family: AF_INET, priority: 1536, fwmark: 0x50000, fwmask: 0xff0000, table: TABLE, protocol: 84 });
      rule.add({ family: AF_INET, priority: 1537, src: '10.0.0.9/32', table: TABLE, protocol: 84 });
      const way = (query: Parameters<typeof route.get>[0]) => {
        try {
          const { oif: out, table, gateway } = route.get(query);
          return `${out} ${table} ${gateway ?? ''}`;
        } catch (error) {
          return (error as NetlinkError).code;
        }
      };
      return [
        way({ dst: '10.1.0.5' }),
        way({ dst: '10.1.0.6' }),
        way({ dst: '10.1.0.6', mark: 0x50001 }),
        way({ dst: '10.1.0.6', mark: 0x60001 }),
        way({ dst: '10.1.0.6', src: '10.0.0.9' }),
        way({ dst: '10.8.0.1', mark: 0x50000 }),
        way({ dst: '10.0.0.7' }),
        way({ dst: '10.0.0.9' }),
        route.get({ dst: '10.1.0.5', fibmatch: true }).dst,
        route.get({ dst: '10.1.0.6', mark: 0x50000 }).prefsrc,
      ];
    },
    sees: [
      ...['2 3999 ', 'ENETUNREACH', '3 4007 10.0.0.1', 'ENETUNREACH', '3 4007 10.0.0.1', 'EINVAL', '3 254 ', '1 255 '],
      ...['10.1.0.5/32', '10.0.0.9'],
    ],
  },
  {
    what: 'each request of a batch gets its own answer; with stopOnError the rest is not tried',
    run({ host }) {
      const oif = addUpPair(host);
      const add = (dst: string, out = oif): Request => ({ object: 'route', verb: 'add', spec: { dst, oif: out } });
      const requests = [add('10.1.0.0/16'), add('10.1.0.0/16'), add('10.2.0.0/16', 999), add('10.3.0.0/16')];
      const codes = (stopOnError: boolean) =>
        host.rtnetlink
          .execute(requests, { stopOnError })
          .map((one) => (one.kind === 'error' ? one.error.code : one.kind));
      return [codes(false), brief(host, AF_INET, 254), codes(true)];
    },
    sees: [
      ['ok', 'EEXIST', 'ENODEV', 'ok'],
      ['10.1.0.0/16 0', '10.3.0.0/16 0'],
      ['EEXIST', 'skipped', 'skipped', 'skipped'],
    ],
  },
  {
    what: 'a refusal has the text of the kernel and the request',
    run({ host }) {
      const oif = addUpPair(host);
      try {
        host.rtnetlink.route.add({ dst: '10.1.0.0/16', gateway: '192.0.2.1', oif });
        return 'ok';
      } catch (error) {
        return (error as NetlinkError).message;
      }
    },
    sees: 'ENETUNREACH: ip route add 10.1.0.0/16 via 192.0.2.1 dev if3: Nexthop has invalid gateway (RTM_NEWROUTE)',
  },
  {
    what: 'a table or a family that is not there has no routes and no rules',
    run({ host }) {
      const { route, rule } = host.rtnetlink;
      return [
        route.list({ family: AF_INET, table: 12_345 }),
        route.list({ family: AF_MISSING }),
        rule.list({ family: AF_MISSING }),
      ];
    },
    sees: [[], [], []],
  },
  {
    what: 'a connection that was closed refuses',
    run({ host }) {
      const rtnetlink = host.openRtnetlink();
      rtnetlink.close();
      return [codeOf(() => rtnetlink.link.list()), codeOf(() => rtnetlink.rule.add({ priority: 5, table: 5 }))];
    },
    sees: ['EBADF', 'EBADF'],
  },
];
