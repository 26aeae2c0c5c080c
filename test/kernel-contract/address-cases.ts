import { IFA_F_NODAD, IFA_F_NOPREFIXROUTE } from '../../netlink/uapi/if-addr.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RT_TABLE_MAIN, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { disableIpv6 } from '../../sysctl/sysctl-key.ts';
import { type ContractCase, codeOf } from './contract-case.ts';
import type { ContractNetns } from './machine.ts';

/** Makes a pair of which both ends are up; returns the number of v0. */
export function addUpPair({ rtnetlink }: ContractNetns): number {
  const { ifindex, peerIfindex = 0 } = rtnetlink.link.addPair({
    ...{ kind: 'veth', ifname: 'v0', address: '02:00:00:00:00:0a', up: true },
    peer: { ifname: 'v1', address: '02:00:00:00:00:0b' },
  });
  rtnetlink.link.set({ ifindex: peerIfindex, up: true });
  return ifindex;
}

const shown = ({ rtnetlink }: ContractNetns, ifindex: number, family: number) =>
  rtnetlink.address
    .list({ ifindex, family })
    .filter(({ scope }) => scope === 0)
    .map(({ address, local, prefixlen, flags }) => `${local ?? address}/${prefixlen} ${flags & ~0x40}`);

const mainRoutes = ({ rtnetlink }: ContractNetns, family: number) =>
  rtnetlink.route
    .list({ family, table: RT_TABLE_MAIN, type: RTN_UNICAST })
    .filter(({ dst = '' }) => !dst.startsWith('fe80'))
    .map(({ dst, oif, prefsrc, protocol, scope }) => ({ dst, oif, prefsrc, protocol, scope }));

/** Addresses, and the routes that the kernel makes of them. */
export const ADDRESS_CASES: readonly ContractCase[] = [
  {
    what: 'an address is added once, replaced and deleted',
    run({ host }) {
      const ifindex = addUpPair(host);
      const { address } = host.rtnetlink;
      const four = { ifindex, address: '10.0.1.50', prefixlen: 32 };
      const six = { ifindex, address: 'fd00::50', prefixlen: 128, flags: IFA_F_NODAD | IFA_F_NOPREFIXROUTE };
      const codes = [four, four, six, six].map((spec) => codeOf(() => address.add(spec)));
      for (const spec of [four, six]) address.replace(spec);
      const during = [shown(host, ifindex, AF_INET), shown(host, ifindex, AF_INET6)];
      const wrong = codeOf(() => address.delete({ ...four, prefixlen: 24 }));
      const deleted = [four, four, six, six].map((spec) => codeOf(() => address.delete(spec)));
      const none = [
        codeOf(() => address.add({ ...four, ifindex: 999 })),
        codeOf(() => address.add({ ...six, ifindex: 999 })),
        codeOf(() => address.delete({ ...four, ifindex: 999 })),
      ];
      return {
        codes,
        during,
        wrong,
        deleted,
        none,
        gone: address.list({ ifindex: 999 }),
        after: shown(host, ifindex, AF_INET),
      };
    },
    sees: {
      codes: ['ok', 'EEXIST', 'ok', 'EEXIST'],
      during: [['10.0.1.50/32 128'], ['fd00::50/128 642']],
      wrong: 'EADDRNOTAVAIL',
      deleted: ['ok', 'EADDRNOTAVAIL', 'ok', 'EADDRNOTAVAIL'],
      ...{ none: ['ENODEV', 'ENODEV', 'ENODEV'], gone: [], after: [] },
    },
  },
  {
    what: 'the prefix of an address has a route of the kernel while the link is up',
    run({ host }) {
      const ifindex = addUpPair(host);
      const { address, link } = host.rtnetlink;
      address.add({ ifindex, address: '10.0.0.9', prefixlen: 24 });
      address.add({ ifindex, address: 'fd00::9', prefixlen: 64, flags: IFA_F_NODAD });
      const up = [mainRoutes(host, AF_INET), mainRoutes(host, AF_INET6)];
      link.set({ ifindex, up: false });
      const down = [
        mainRoutes(host, AF_INET),
        mainRoutes(host, AF_INET6),
        shown(host, ifindex, AF_INET),
        shown(host, ifindex, AF_INET6),
      ];
      link.set({ ifindex, up: true });
      return { up, down, again: mainRoutes(host, AF_INET) };
    },
    sees: {
      up: [
        [{ dst: '10.0.0.0/24', oif: 3, prefsrc: '10.0.0.9', protocol: 2, scope: 253 }],
        [{ dst: 'fd00::/64', oif: 3, prefsrc: undefined, protocol: 2, scope: 0 }],
      ],
      down: [[], [], ['10.0.0.9/24 128'], []],
      again: [{ dst: '10.0.0.0/24', oif: 3, prefsrc: '10.0.0.9', protocol: 2, scope: 253 }],
    },
  },
  {
    what: 'the prefix of an IPv6 address has its route once its link is up, also without a carrier',
    run({ host }) {
      const { address, link } = host.rtnetlink;
      const ifindex = link.add({ kind: 'veth', ifname: 'v0', peer: { ifname: 'v1' } });
      address.add({ ifindex, address: 'fd00::9', prefixlen: 64, flags: IFA_F_NODAD });
      const down = mainRoutes(host, AF_INET6);
      link.set({ ifindex, up: true });
      return { down, up: mainRoutes(host, AF_INET6) };
    },
    sees: { down: [], up: [{ dst: 'fd00::/64', oif: 3, prefsrc: undefined, protocol: 2, scope: 0 }] },
  },
  {
    what: 'an IPv6 address that is replaced has the route of its prefix as asked',
    run({ host }) {
      const { address } = host.rtnetlink;
      const ifindex = addUpPair(host);
      const asked = (flags: number) => {
        address.replace({ ifindex, address: 'fd00::9', prefixlen: 64, flags: IFA_F_NODAD | flags });
        return mainRoutes(host, AF_INET6).length;
      };
      return [asked(0), asked(IFA_F_NOPREFIXROUTE), asked(0)];
    },
    sees: [1, 0, 1],
  },
  {
    what: 'a second address of a prefix goes with the first one',
    run({ host }) {
      const ifindex = addUpPair(host);
      const { address } = host.rtnetlink;
      for (const ip of ['10.0.0.9', '10.0.0.10']) address.add({ ifindex, address: ip, prefixlen: 24 });
      address.add({ ifindex, address: '10.7.0.1', prefixlen: 32 });
      const during = shown(host, ifindex, AF_INET);
      address.delete({ ifindex, address: '10.0.0.9', prefixlen: 24 });
      return [during, shown(host, ifindex, AF_INET)];
    },
    sees: [['10.0.0.9/24 128', '10.7.0.1/32 128', '10.0.0.10/24 129'], ['10.7.0.1/32 128']],
  },
  {
    what: 'with the last IPv4 address of a link all its IPv4 routes go, and from main those with the address as their source',
    run({ host }) {
      const ifindex = addUpPair(host);
      const { address, route } = host.rtnetlink;
      address.add({ ifindex, address: '10.0.0.9', prefixlen: 32 });
      address.add({ ifindex, address: '10.0.0.10', prefixlen: 32 });
      route.add({ dst: '10.1.0.0/16', oif: ifindex, table: 4000, protocol: 84 });
      for (const table of [RT_TABLE_MAIN, 4000])
        route.add({ dst: '10.2.0.0/16', oif: 2, table, protocol: 84, prefsrc: '10.0.0.9' });
      const left = () => route.list({ family: AF_INET, protocol: 84 }).map(({ dst, table }) => `${dst} ${table}`);
      const before = left();
      address.delete({ ifindex, address: '10.0.0.9', prefixlen: 32 });
      const between = left();
      address.delete({ ifindex, address: '10.0.0.10', prefixlen: 32 });
      return [before, between, left()];
    },
    sees: [
      ['10.1.0.0/16 4000', '10.2.0.0/16 4000', '10.2.0.0/16 254'],
      ['10.1.0.0/16 4000', '10.2.0.0/16 4000'],
      ['10.2.0.0/16 4000'],
    ],
  },
  {
    what: 'a link without IPv6 has no addresses of it',
    run({ host }) {
      const ifindex = addUpPair(host);
      host.rtnetlink.address.add({ ifindex, address: 'fd00::9', prefixlen: 64, flags: IFA_F_NODAD });
      host.sysctl.set(disableIpv6('v0'), '1');
      return [
        shown(host, ifindex, AF_INET6),
        mainRoutes(host, AF_INET6),
        codeOf(() => host.rtnetlink.address.add({ ifindex, address: 'fd00::9', prefixlen: 64 })),
        codeOf(() => host.rtnetlink.route.add({ dst: 'fd01::/64', oif: ifindex })),
      ];
    },
    sees: [[], [], 'EACCES', 'EACCES'],
  },
  {
    what: 'the loopback has its addresses when it is up',
    run({ host }) {
      host.rtnetlink.link.set({ ifindex: 1, up: true });
      const { address, route } = host.rtnetlink;
      return [
        address.list().map((one) => `${one.address}/${one.prefixlen} ${one.scope}`),
        route.get({ dst: '127.0.0.1' }).type,
        route.get({ dst: '::1' }).type,
      ];
    },
    sees: [['127.0.0.1/8 254', '::1/128 254'], 2, 2],
  },
];
