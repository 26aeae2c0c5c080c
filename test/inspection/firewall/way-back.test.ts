import test from 'ava';
import { buildFirewallChains } from '../../../inspection/firewall/build-firewall-chains.ts';
import type { Packet } from '../../../inspection/firewall/evaluate-chain.ts';
import { dropsUnmarkedWayBack } from '../../../inspection/firewall/evaluate-firewall-chain.ts';
import { known, unknown } from '../../../inspection/node/known.ts';

// What comes in by an ENI in rule mode compact: the way back is by that ENI for who asks with its mark.

const PACKET: Packet = { family: 4, dst: '10.0.5.10', iifs: ['eth1'], oifs: ['eni5'], isMarkedWayBack: true };
const NONE = unknown('not read', '');

const fib = (flags: readonly string[], right: unknown, ...verdict: readonly object[]) => [
  { match: { op: '==', left: { fib: { result: 'oif', flags } }, right } },
  ...verdict,
];
const DROP = { drop: null };
const ACCEPT = { accept: null };

/** Tells for each base chain whether it drops such a packet for want of a way back. */
function drops(
  {
    iptables = [],
    nft = [],
    policy = 'accept',
  }: { iptables?: readonly string[]; nft?: readonly unknown[]; policy?: string },
  packet: Packet = PACKET,
): readonly boolean[] {
  const place = { family: 'inet', table: 'other' };
  const chains = buildFirewallChains({
    objects:
      nft.length === 0
        ? []
        : [
            { chain: { ...place, name: 'c', type: 'filter', hook: 'prerouting', prio: 0, policy } },
            ...nft.map((expr) => ({ rule: { ...place, chain: 'c', expr } })),
          ],
    iptables: known({
      legacy: known(iptables.length === 0 ? [] : ['*raw', ':PREROUTING ACCEPT [0:0]', ...iptables, 'COMMIT']),
      nft: NONE,
    }),
    queueListeners: known([]),
  });
  return chains.map((chain) => dropsUnmarkedWayBack(chain, packet));
}

const iptables = (...options: readonly string[]) => ({
  iptables: options.map((option) => `-A PREROUTING ${option}`),
});

test('dropsUnmarkedWayBack: rpfilter of iptables, without its mark, with it, and loose', (t) => {
  t.deepEqual(drops(iptables('-m rpfilter --invert -j DROP')), [true]);
  t.deepEqual(
    drops(iptables('! -s 10.0.0.0/8 -m rpfilter --accept-local --invert -j DROP')),
    [false],
    'not this packet for sure',
  );
  t.deepEqual(drops(iptables('-m rpfilter --validmark --invert -j DROP')), [false]);
  t.deepEqual(drops(iptables('-m rpfilter --loose --invert -j DROP')), [false]);
  t.deepEqual(drops(iptables('-m rpfilter -j RETURN', '-j DROP')), [true], 'as NixOS has it');
  t.deepEqual(drops(iptables('-m rpfilter --validmark -j RETURN', '-j DROP')), [false]);
  t.deepEqual(drops(iptables('-j DROP')), [false], 'it drops all: another finding');
});

test('dropsUnmarkedWayBack: fib of nftables', (t) => {
  t.deepEqual(drops({ nft: [fib(['saddr', 'iif'], false, DROP)] }), [true]);
  t.deepEqual(drops({ nft: [fib(['saddr', 'mark', 'iif'], false, DROP)] }), [false], 'as firewalld has it');
  t.deepEqual(drops({ nft: [fib(['saddr'], false, DROP)] }), [false], 'loose');
  t.deepEqual(drops({ nft: [fib(['saddr', 'iif'], true, ACCEPT)], policy: 'drop' }), [true]);
  t.deepEqual(
    drops({ nft: [fib(['saddr', 'mark', 'iif'], true, ACCEPT)], policy: 'drop' }),
    [false],
    'as NixOS has it',
  );
  t.deepEqual(drops({ nft: [fib(['saddr', 'iif'], 'eth1', ACCEPT)], policy: 'drop' }), [true], 'no interface at all');
});

test('dropsUnmarkedWayBack: not in rule mode per-pod, where rules by address lead back', (t) => {
  const { isMarkedWayBack: _, ...packet } = PACKET;
  t.deepEqual(drops({ nft: [fib(['saddr', 'iif'], false, DROP)] }, packet), [false]);
  t.deepEqual(drops(iptables('-m rpfilter --invert -j DROP'), packet), [false]);
});
