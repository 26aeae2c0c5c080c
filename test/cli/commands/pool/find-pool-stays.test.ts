import test from 'ava';
import { findPoolStays } from '../../../../cli/commands/pool/find-pool-stays.ts';
import type { AddressUse, AddressView, PoolEniView, PoolView } from '../../../../cli/commands/pool/pool-view.ts';

/** One address of an ENI; a static one is for `shop/db-0`. */
function addressOf(index: number, use: AddressUse, parts: Partial<AddressView> = {}): AddressView {
  const owner = { containerId: `c${index}`, ifName: 'eth0', podNamespace: 'shop', podName: `cart-${index}` };
  return {
    ...{ ip: `10.0.2.${index}`, family: 4, eniId: 'eni-1', use, assignmentId: `a-${index}` },
    ...(use === 'in-use' ? { owner } : {}),
    ...(use === 'kept' ? { keptFor: { pods: 'shop/db-0' } } : {}),
    ...parts,
  };
}

function eniOf(eniId: string, parts: Partial<PoolEniView> = {}): PoolEniView {
  return { eniId, mac: '', primary: [], attached: true, draining: false, ready: true, problem: '', ...parts };
}

/** Tells the reasons of `eni-1`. */
function reasonsOf(addresses: readonly AddressView[], parts: Partial<PoolView> = {}, supplySource = 'cluster'): string {
  const view: PoolView = {
    ...{ source: 'agent', nodeName: 'n1', supplyProblem: '', warm: { min: 1, max: 2 }, demand: 0, waiting: [] },
    ...{ enis: [eniOf('eni-1'), eniOf('eni-2')], addresses },
    ...parts,
  };
  const stays = findPoolStays({ view, supplySource }).get('eni-1') ?? [];
  return stays.map(({ reason }) => reason).join(' ');
}

test('findPoolStays: counts the pool of the whole node', (t) => {
  const here = [addressOf(1, 'in-use'), addressOf(2, 'free')];
  const there = [addressOf(3, 'free', { eniId: 'eni-2' }), addressOf(4, 'cooling', { eniId: 'eni-2' })];
  t.is(reasonsOf([...here, ...there], { demand: 4 }), 'in-use warm');
  t.is(reasonsOf([...here, ...there], { demand: 3 }), 'in-use pace');
});

test('findPoolStays: free addresses of an ENI that drains or is not attached are no part of the pool', (t) => {
  const addresses = [addressOf(1, 'free'), addressOf(2, 'free', { eniId: 'eni-2' })];
  const enis = (parts: Partial<PoolEniView>) => [eniOf('eni-1'), eniOf('eni-2', parts)];
  t.is(reasonsOf(addresses, { demand: 1, enis: enis({}) }), 'pace');
  t.is(reasonsOf(addresses, { demand: 1, enis: enis({ draining: true }) }), 'warm');
  t.is(reasonsOf(addresses, { demand: 1, enis: enis({ attached: false }) }), 'warm');
});

test('findPoolStays: static addresses are no part of the pool, offered or not', (t) => {
  const offered = addressOf(2, 'offered', { keptFor: { pods: 'shop/db-0' } });
  t.is(reasonsOf([addressOf(1, 'kept'), offered], { demand: 1 }), 'static');
});

test('findPoolStays: an IPv6 address goes with its IPv4 address, and holds its ENI while it is in use', (t) => {
  const free = addressOf(9, 'free', { ip: 'fd00::9', family: 6 });
  t.is(reasonsOf([addressOf(1, 'offered'), free], { demand: 0 }), 'offered');
  t.is(reasonsOf([addressOf(1, 'offered'), addressOf(9, 'in-use', { ip: 'fd00::9', family: 6 })]), 'in-use offered');
});

test('findPoolStays: a Pod with two addresses counts once', (t) => {
  const second = addressOf(1, 'in-use', { ip: 'fd00::1', family: 6 });
  const view = { source: 'agent', nodeName: 'n1', supplyProblem: '', enis: [eniOf('eni-1')] } as const;
  const addresses = [addressOf(1, 'in-use'), second];
  const stays = findPoolStays({ view: { ...view, addresses }, supplySource: 'cluster' }).get('eni-1');
  t.deepEqual(stays, [{ reason: 'in-use', text: '1 Pod uses its addresses: shop/cart-1' }]);
});

test('findPoolStays: what the agent reports', (t) => {
  const free = [addressOf(1, 'free')];
  t.is(reasonsOf(free, { demand: 1, waiting: ['shop/cart-7'] }), 'waiting-adds warm');
  t.is(reasonsOf(free, { demand: 1, supplyProblem: 'epoch 1 is below 2' }), 'supply-problem warm');
  t.is(reasonsOf(free, { demand: 1 }, 'file'), 'supply-file');
  t.is(reasonsOf(free, { demand: 1 }, ''), 'warm');
});

test('findPoolStays: with the role uplinks the agent returns nothing, whatever shows', (t) => {
  t.is(reasonsOf([addressOf(1, 'free')], { demand: 0, role: 'uplinks' }), 'uplinks');
  t.is(reasonsOf([], { role: 'uplinks' }, 'file'), 'uplinks');
});

test('findPoolStays: from the journal, what needs the agent is left out', (t) => {
  const { demand: _demand, ...journal } = { demand: 0, source: 'journal', whyNoAgent: 'there is no socket' } as const;
  const view = {
    ...{ nodeName: 'n1', supplyProblem: '', enis: [eniOf('eni-1')] },
    ...{ addresses: [addressOf(1, 'in-use'), addressOf(2, 'free'), addressOf(3, 'releasing')] },
    ...journal,
  };
  const stays = findPoolStays({ view, supplySource: '' }).get('eni-1') ?? [];
  t.deepEqual(
    stays.map(({ reason }) => reason as string),
    ['in-use', 'releasing', 'agent-silent'],
  );
});
