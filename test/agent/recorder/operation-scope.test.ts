import test from 'ava';
import { findOwner, groupByLease, reliesOn } from '../../../agent/recorder/operation-scope.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { forwarding, ipForward, rpFilter, tcpBeLiberal } from '../../../sysctl/sysctl-key.ts';
import { sampleLease } from '../pool/supply-sample.ts';

type Owners = Parameters<typeof findOwner>[1];

const STATE = {
  enis: new Map([
    ['eni-1', { eniId: 'eni-1', table: 4_007, ifindex: 7, ifname: 'eth1', addresses: [{ ip: '10.0.0.2' }] }],
    ['eni-2', { eniId: 'eni-2', table: 4_008, ifindex: 8, ifname: 'eth2', addresses: [{ ip: '10.0.1.2' }] }],
  ]),
  leases: new Map([
    ['c/eth0', { eniId: 'eni-2', addresses: [{ ip: '10.0.1.9' }], hostVeth: { name: 'eni123', ifindex: 20 } }],
  ]),
} as unknown as Owners;

const rule = (fields: object): Operation =>
  ({ kind: 'add-rule', rule: { family: 4, priority: 1, table: 254, ...fields } }) as Operation;
const route = (fields: object): Operation =>
  ({ kind: 'replace-route', route: { table: 3_999, dst: '0.0.0.0/0', oif: 99, oifname: 'x', ...fields } }) as Operation;
const sysctl = (key: ReturnType<typeof ipForward>): Operation => ({ kind: 'set-sysctl', key, value: '1', before: '0' });
const alias = (change: object): Operation =>
  ({ kind: 'set-link', ifindex: 20, ifname: 'eni123', change, before: {} }) as Operation;
const NFT: Operation = { kind: 'load-nft', commands: '' };

const OWNERS: readonly (readonly [string, Operation, 'node' | readonly string[]])[] = [
  ['the nftables table', NFT, 'node'],
  ['the flowtable', { kind: 'replace-flowtable', commands: '' }, []],
  ['ip_forward', sysctl(ipForward()), 'node'],
  ['a setting of the primary interface', sysctl(rpFilter('eth0')), 'node'],
  ['a setting of an ENI', sysctl(rpFilter('eth1')), ['eni-1']],
  ["a setting of a Pod's link", sysctl(forwarding(4, 'eni123')), ['c/eth0']],
  ["the alias of a Pod's link", alias({ ifalias: 'tke-eni/c/eth0' }), ['c/eth0']],
  ['the rule of all Pod routes', rule({ priority: 512, table: 3_999 }), 'node'],
  ['a rule of many addresses', rule({ dst: '10.0.0.0/8' }), 'node'],
  ["the rule of an ENI's mark", rule({ fwmark: 1, fwmask: 255, table: 4_007 }), ['eni-1']],
  ["the rule of a Pod's address", rule({ dst: '10.0.1.9/32' }), ['c/eth0']],
  ["an ENI's default route", route({ table: 4_007, oif: 7 }), ['eni-1']],
  ["the rule of a Pod into its ENI's table", rule({ priority: 1_536, src: '10.0.1.9/32', table: 4_008 }), ['c/eth0']],
  ['the route to a Pod', route({ dst: '10.0.1.9/32', oif: 20 }), ['c/eth0']],
  ['the route to a Pod that is gone', route({ dst: '10.0.1.8/32', oif: 21 }), []],
];

for (const [what, operation, owner] of OWNERS) {
  test(`findOwner: ${what} serves ${owner === 'node' ? 'the node' : owner.join() || 'nobody'}`, (t) => {
    const found = findOwner(operation, STATE, 'eth0');
    t.deepEqual(found === 'node' ? found : [...found.eniIds, ...found.pods.keys()], owner);
  });
}

const removal = (table: number): Operation => ({ kind: 'delete-rule', rule: { family: 4, priority: 1_536, table } });

test('reliesOn: a removal waits for what is about the same ENI or the node, and for nothing else', (t) => {
  t.true(reliesOn(removal(4_007), [rule({ table: 4_007 })]));
  t.false(reliesOn(removal(4_007), [rule({ table: 4_008 })]));
  t.true(reliesOn(removal(4_007), [NFT]));
  t.false(reliesOn(removal(4_007), []));
});

test('reliesOn: what all Pods of the node use goes last', (t) => {
  const shared: Operation = { kind: 'delete-rule', rule: { family: 4, priority: 512, table: 3_999 } };
  t.true(reliesOn(shared, [rule({ table: 4_008 })]));
});

test('reliesOn: only removals wait', (t) => {
  t.false(reliesOn(rule({ table: 4_007 }), [rule({ table: 4_007 })]));
});

test('reliesOn: the setting of connection tracking waits for what lets packets pass by it, and for nothing else', (t) => {
  const setting: Operation = {
    kind: 'set-sysctl',
    key: tcpBeLiberal(),
    value: '0',
    before: '1',
    keepsConnections: true,
  };
  const filter = { ifindex: 7, ifname: 'eth1', direction: 'ingress', program: 'fast' } as const;
  t.true(reliesOn(setting, [NFT, { kind: 'detach-filter', filter }]));
  t.true(reliesOn(setting, [{ kind: 'delete-flowtable', before: '' }]));
  t.false(reliesOn(setting, [NFT, removal(4_007)]));
  t.false(reliesOn(sysctl(ipForward()), [{ kind: 'detach-filter', filter }]));
});

test('groupByLease: groups operations by Pod, whatever tells of it, and those of the node by none', (t) => {
  const lease = sampleLease('c1', 'eni-1', ['10.0.0.5', 'fd00::5'], {
    hostVeth: { name: 'eni0123456789a', mac: '02:00:00:00:00:01', ifindex: 9 },
  });
  const other = sampleLease('c2', 'eni-1', ['10.0.0.6']);
  const link = { oif: 9, oifname: 'eni0123456789a' };
  const ofPod: readonly Operation[] = [
    { kind: 'replace-route', route: { table: 3999, dst: '10.0.0.5/32', oif: 3, oifname: 'x' } },
    { kind: 'delete-route', route: { table: 254, dst: '1.2.3.4/32', ...link } },
    { kind: 'replace-route', route: { table: 3999, dst: 'fd00::5/128', ...link } },
    { kind: 'add-rule', rule: { family: 4, priority: 1536, src: '10.0.0.5/32', table: 4007 } },
    { kind: 'delete-rule', rule: { family: 4, priority: 512, dst: '10.0.0.5/32', table: 254 } },
    { kind: 'set-link', ifindex: 9, ifname: 'eni0123456789a', change: { up: true }, before: {} },
    { kind: 'delete-address', address: { ifindex: 9, ifname: 'eni0123456789a', prefix: '10.9.9.9/24' } },
    { kind: 'set-sysctl', key: rpFilter('eni0123456789a'), value: '1', before: '0' },
  ];
  const ofNode: readonly Operation[] = [
    rule({ priority: 512, table: 3_999 }),
    { kind: 'add-address', address: { ifindex: 7, ifname: 'eth1', prefix: '10.0.0.2/32' } },
    { kind: 'load-nft', commands: '' },
    { kind: 'set-sysctl', key: rpFilter('eth0'), value: '2', before: '0' },
    { kind: 'replace-route', route: { table: 4007, dst: '0.0.0.0/0', oif: 7, oifname: 'eth1' } },
  ];
  const found = groupByLease([...ofPod, ...ofNode], [lease, other]);
  t.deepEqual(
    [...found],
    [
      [lease, ofPod],
      [undefined, ofNode],
    ],
  );
});
