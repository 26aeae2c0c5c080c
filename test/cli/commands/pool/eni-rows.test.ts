import test from 'ava';
import type { AddressUse, AddressView, PoolEniView, PoolView } from '../../../../cli/commands/pool/pool-view.ts';
import { eniRows } from '../../../../cli/commands/pool/run-enis.ts';
import type { Stay } from '../../../../cli/commands/pool/stays.ts';

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

const WARM: Stay = { reason: 'warm', text: 'the node keeps 2 spare (warm target)' };

/** Tells the reasons of `eni-1`. */
function reasonsOf(
  addresses: readonly AddressView[],
  parts: Partial<PoolView> = {},
  said: readonly Stay[] = [],
): string {
  const view: PoolView = {
    ...{ source: 'agent', nodeName: 'n1', supplyProblem: '', enis: [eniOf('eni-1'), eniOf('eni-2')], addresses },
    ...parts,
  };
  const [row] = eniRows({ view, agentStays: new Map([['eni-1', said]]) });
  return (row?.stays ?? []).map(({ reason }) => reason).join(' ');
}

test('eniRows: what the agent says of free addresses is printed as it is, behind what shows', (t) => {
  const own = [addressOf(1, 'in-use'), addressOf(2, 'free'), addressOf(3, 'cooling'), addressOf(4, 'releasing')];
  t.is(reasonsOf(own, {}, [WARM]), 'in-use cooling releasing warm');
  t.is(reasonsOf([addressOf(2, 'free')], {}, [WARM]), 'warm');
});

test('eniRows: an agent of an older release says nothing: no reason is made up', (t) => {
  t.is(reasonsOf([addressOf(1, 'free')], { demand: 0, warm: { min: 1, max: 2 } }), 'unknown');
});

test('eniRows: an ENI that drains, or is not attached', (t) => {
  t.is(reasonsOf([addressOf(1, 'in-use')], { enis: [eniOf('eni-1', { draining: true })] }), 'in-use draining');
  t.is(reasonsOf([], { enis: [eniOf('eni-1', { attached: false })] }), 'not-attached');
});

test('eniRows: static addresses, offered or not', (t) => {
  const offered = addressOf(2, 'offered', { keptFor: { pods: 'shop/db-0' } });
  t.is(reasonsOf([addressOf(1, 'kept'), offered]), 'static');
});

test('eniRows: an IPv6 address goes with its IPv4 address, and holds its ENI while it is in use', (t) => {
  const free = addressOf(9, 'free', { ip: 'fd00::9', family: 6 });
  t.is(reasonsOf([addressOf(1, 'offered'), free]), 'offered');
  t.is(reasonsOf([addressOf(1, 'offered'), addressOf(9, 'in-use', { ip: 'fd00::9', family: 6 })]), 'in-use offered');
});

test('eniRows: a Pod with two addresses counts once', (t) => {
  const second = addressOf(1, 'in-use', { ip: 'fd00::1', family: 6 });
  const view = { source: 'agent', nodeName: 'n1', supplyProblem: '', enis: [eniOf('eni-1')] } as const;
  const [row] = eniRows({ view: { ...view, addresses: [addressOf(1, 'in-use'), second] }, agentStays: new Map() });
  t.deepEqual(row?.stays, [{ reason: 'in-use', text: '1 Pod uses its addresses: shop/cart-1' }]);
});

test('eniRows: with the role uplinks the agent returns nothing, whatever shows', (t) => {
  t.is(reasonsOf([addressOf(1, 'free')], { role: 'uplinks' }), 'uplinks');
  t.is(reasonsOf([], { role: 'uplinks' }), 'uplinks');
});

test('eniRows: from the journal, what needs the agent is left out', (t) => {
  const own = [addressOf(1, 'in-use'), addressOf(2, 'free'), addressOf(3, 'releasing')];
  t.is(reasonsOf(own, { source: 'journal', whyNoAgent: 'there is no socket' }), 'in-use releasing agent-silent');
});
