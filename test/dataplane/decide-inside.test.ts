import test from 'ava';
import { type InsideSigns, isKataTap, isTaken } from '../../dataplane/decide-inside.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK, RT_SCOPE_UNIVERSE } from '../../netlink/uapi/rtnetlink.ts';

const ETH0 = 2;
const EMPTIED: InsideSigns = {
  links: [
    { ifindex: 1, ifname: 'lo' },
    { ifindex: ETH0, ifname: 'eth0', kind: 'veth', link: 7 },
  ],
  addresses: [{ ifindex: 1, scope: 254 }],
  routes: [],
  packetLinks: [],
};
const WHOLE: InsideSigns = {
  ...EMPTIED,
  addresses: [{ ifindex: ETH0, scope: RT_SCOPE_UNIVERSE }],
  routes: [{ family: AF_INET, oif: ETH0 }],
};

function tapOf(ifname: string): InsideSigns['links'][number] {
  return { ifindex: 3, ifname, kind: 'tun' };
}

const CASES: readonly (readonly [string, InsideSigns, string | undefined, boolean])[] = [
  ['all is there', WHOLE, undefined, false],
  ['all is there, by gVisor (before its sandbox starts)', WHOLE, 'runsc', false],
  ['all is there, a packet socket reads (tcpdump, a tap of Kata)', { ...WHOLE, packetLinks: [ETH0] }, undefined, false],
  ['emptied and nothing else: a careless flush', EMPTIED, undefined, false],
  ['emptied, the default runtime', EMPTIED, '', false],
  ['emptied, a runtime that we do not know', EMPTIED, 'nvidia', false],
  ['emptied, by gVisor', EMPTIED, 'runsc', true],
  ['emptied, by gVisor under another name', EMPTIED, 'gvisor-kvm', true],
  ['emptied, by Kata', EMPTIED, 'kata-qemu', true],
  ['emptied, a packet socket reads', { ...EMPTIED, packetLinks: [ETH0] }, undefined, true],
  [
    'emptied, a packet socket reads, of a runtime that we do not know',
    { ...EMPTIED, packetLinks: [ETH0] },
    'own',
    true,
  ],
  ['emptied by a flush while tcpdump reads, by runc', { ...EMPTIED, packetLinks: [ETH0] }, 'runc', false],
  ['emptied, a packet socket reads another link', { ...EMPTIED, packetLinks: [1] }, undefined, false],
  ['emptied, with a tap of Kata', { ...EMPTIED, links: [...EMPTIED.links, tapOf('tap0_kata')] }, undefined, true],
  ['emptied, with any tap', { ...EMPTIED, links: [...EMPTIED.links, tapOf('tap0')] }, undefined, false],
  [
    'emptied, a macvtap above the link',
    { ...EMPTIED, links: [...EMPTIED.links, { ifindex: 3, ifname: 'm', kind: 'macvtap', link: ETH0 }] },
    undefined,
    true,
  ],
  [
    'emptied, a macvtap above another link',
    { ...EMPTIED, links: [...EMPTIED.links, { ifindex: 3, ifname: 'm', kind: 'macvtap', link: 9 }] },
    undefined,
    false,
  ],
  [
    'emptied but for what the kernel adds and a default route of IPv6',
    {
      ...EMPTIED,
      addresses: [{ ifindex: ETH0, scope: RT_SCOPE_LINK }],
      routes: [{ family: AF_INET6, oif: ETH0 }],
    },
    'runsc',
    true,
  ],
  ['one address is left', { ...EMPTIED, addresses: WHOLE.addresses }, 'runsc', false],
  ['one IPv4 route is left', { ...EMPTIED, routes: WHOLE.routes }, 'runsc', false],
  ['the link is gone', { ...EMPTIED, links: [] }, 'runsc', false],
];

for (const [title, signs, handler, expected] of CASES) {
  test(`isTaken: is ${expected} when ${title}`, (t) => {
    t.is(isTaken(signs, [ETH0], handler), expected);
  });
}

test('isTaken: is false of a Pod to whose links we gave no address', (t) => {
  t.false(isTaken(EMPTIED, [], 'runsc'));
});

test('isTaken: is false while one of the two links of a Pod has its address', (t) => {
  const links = [...EMPTIED.links, { ifindex: 3, ifname: 'eth1' }];
  t.false(isTaken({ ...WHOLE, links }, [ETH0, 3], 'runsc'));
  t.true(isTaken({ ...EMPTIED, links }, [ETH0, 3], 'runsc'));
});

test('isKataTap: knows the devices by the names that Kata gives', (t) => {
  for (const ifname of ['tap0_kata', 'tap12_kata']) t.true(isKataTap({ ifname }));
  for (const ifname of ['tap0', 'tap_kata', 'xtap0_kata', 'tap0_kata2']) t.false(isKataTap({ ifname }));
});
