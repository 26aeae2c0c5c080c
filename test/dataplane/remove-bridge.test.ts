import test from 'ava';
import { locateBridge } from '../../dataplane/locate-bridge.ts';
import { BRIDGE_ALIAS, BRIDGE_IFINDEX } from '../../dataplane/numbers.ts';
import { decideBridgeRemoval } from '../../dataplane/remove-bridge.ts';

type Links = Parameters<typeof decideBridgeRemoval>[0];
const cbr0 = { ifindex: BRIDGE_IFINDEX, ifname: 'cbr0', kind: 'bridge', ifalias: BRIDGE_ALIAS };
const port = (n: number, master: number) => ({ ifindex: n, ifname: `p${n}`, kind: 'veth', master });

const removal = test.macro((t, links: Links, expected: ReturnType<typeof decideBridgeRemoval>) => {
  t.deepEqual(decideBridgeRemoval(links, 'cbr0'), expected);
});
const deleted = { kind: 'delete', bridge: { ifindex: BRIDGE_IFINDEX, ifname: 'cbr0' } } as const;

test('decideBridgeRemoval: nothing where there is no bridge', removal, [port(3, 0)], { kind: 'none' });
test('decideBridgeRemoval: deletes ours when it has no port', removal, [cbr0, port(3, 9)], deleted);
test(
  'decideBridgeRemoval: ours has no alias yet when the agent ended early',
  removal,
  [{ ...cbr0, ifalias: '' }],
  deleted,
);
test(
  'decideBridgeRemoval: keeps ours while it has ports',
  removal,
  [cbr0, ...[3, 4, 5, 6, 7].map((n) => port(n, BRIDGE_IFINDEX))],
  {
    kind: 'keep',
    why: 'cbr0 has ports: p3, p4, p5, and 2 more',
  },
);
test(
  'decideBridgeRemoval: keeps one that another program made',
  removal,
  [{ ifindex: 7, ifname: 'cbr0', kind: 'bridge' }],
  { kind: 'keep', why: 'cbr0 was made by another program' },
);
test('decideBridgeRemoval: knows ours under another name', removal, [{ ...cbr0, ifname: 'old0' }], {
  kind: 'delete',
  bridge: { ifindex: BRIDGE_IFINDEX, ifname: 'old0' },
});

const location = test.macro((t, links: Links, ifindex: number, isPresent: boolean) => {
  t.deepEqual(locateBridge(links, 'cbr0'), { name: 'cbr0', ifindex, isPresent });
});
test('locateBridge: ours', location, [cbr0], BRIDGE_IFINDEX, true);
test('locateBridge: that of another program', location, [{ ifindex: 7, ifname: 'cbr0', kind: 'bridge' }], 7, true);
test('locateBridge: none', location, [{ ifindex: 7, ifname: 'docker0', kind: 'bridge' }], BRIDGE_IFINDEX, false);
test(
  'locateBridge: a link of another kind',
  location,
  [{ ifindex: 7, ifname: 'cbr0', kind: 'dummy' }],
  BRIDGE_IFINDEX,
  false,
);

test('locateBridge: ours under another name, which it keeps', (t) => {
  const links = [{ ...cbr0, ifname: 'old0' }];
  t.deepEqual(locateBridge(links, 'cbr0'), { name: 'old0', ifindex: BRIDGE_IFINDEX, isPresent: true });
});
