import test from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import type { Supply } from '../../../agent/journal/supply.ts';
import { retainEnisInUse } from '../../../agent/supply/retain-enis-in-use.ts';
import { addOf, createTestNode, PATIENT, supplyOf, type TestNode } from './fixtures.ts';

const V6 = { ip: 'fd00::2', family: 6 as const, gateway: 'fd00::1', subnetCidr: 'fd00::/64' };

function takeIn({ state }: TestNode, supply: Supply): void {
  state.supply = retainEnisInUse(supply, state.supply, state.leases.values());
  state.pool.applySupply(state.supply);
}

test('attach: serves from an IPv4 ENI while a Pod still holds the dual-stack ENI that was replaced', async (t) => {
  const node = createTestNode(1);
  t.teardown(() => node.close());
  const [eni] = supplyOf(1).enis;
  if (eni === undefined) throw new Error('no ENI in the sample');
  const v6 = { ip: 'fd00::10', family: 6 as const, assignmentId: 'asg-6', state: 'assigned' as const };
  const dual = { ...eni, primary: [...eni.primary, V6], addresses: [...eni.addresses, v6] };
  takeIn(node, { ...supplyOf(1), enis: [dual] });
  const first = await attach(node.deps, addOf(1), PATIENT);
  t.is(first.kind === 'attached' && first.lease.addresses.length, 2);

  const address = { ip: '10.0.0.99', family: 4 as const, assignmentId: 'asg-9', state: 'assigned' as const };
  takeIn(node, { ...supplyOf(1, 2), enis: [{ ...eni, eniId: 'eni-2', addresses: [address] }] });
  const network = node.state.enis.get('eni-1');
  if (network === undefined) throw new Error('no network of eni-1');
  node.state.enis.set('eni-2', { ...network, eniId: 'eni-2', table: 4008, slot: 2 });
  node.state.eniRecords.set('eni-2', { eniId: 'eni-2', mac: network.mac, table: 4008, slot: 2 });
  node.state.readyEnis.add('eni-2');
  t.deepEqual(node.state.families(), [4, 6], "the first Pod's routes are still planned");
  const second = await attach(node.deps, addOf(2), PATIENT);
  t.deepEqual(second.kind === 'attached' && second.lease.addresses.map(({ ip }) => ip), ['10.0.0.99']);
});

test('attach: refuses an MTU with which the kernel has no IPv6, and says what to change', async (t) => {
  const node = createTestNode(4);
  t.teardown(() => node.close());
  const [eni] = supplyOf(4).enis;
  if (eni === undefined) throw new Error('no ENI in the sample');
  const v6 = { ip: 'fd00::10', family: 6 as const, assignmentId: 'asg-6', state: 'assigned' as const };
  takeIn(node, {
    ...supplyOf(4),
    enis: [{ ...eni, primary: [...eni.primary, V6], addresses: [...eni.addresses, v6] }],
  });
  const small = await attach(node.deps, addOf(1, { mtu: 1279 }), PATIENT);
  t.like(small, { kind: 'failed', failure: { code: 7 } });
  t.regex(small.kind === 'failed' ? small.failure.msg : '', /mtu 1279 is too small.*needs 1280/);
  t.is(node.state.leases.size, 0);
  for (const [number, change] of [{ mtu: 1280 }, { mtu: 68, disableIpv6: true }].entries())
    t.is((await attach(node.deps, addOf(2 + number, change), PATIENT)).kind, 'attached');
});
