import test from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { enisStatusOf, statusOf } from '../../../agent/state/status.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { sampleLease } from '../pool/supply-sample.ts';
import { addOf, createTestNode, PATIENT } from '../use-cases/fixtures.ts';

function stateOf(t: { teardown(run: () => void): void }, ipCount = 2) {
  const node = createTestNode(ipCount);
  t.teardown(() => node.close());
  return node;
}

test('statusOf: says nothing when an ADD could be served', (t) => {
  t.is(statusOf(stateOf(t).state, undefined), undefined);
});

test('statusOf: says 50 while the agent holds back, with the reason', (t) => {
  t.like(statusOf(stateOf(t).state, 'the agent is starting'), { code: 50, msg: 'the agent is starting' });
});

test('statusOf: says nothing when the pool is empty for the moment', async (t) => {
  const { deps, state } = stateOf(t, 1);
  await attach(deps, addOf(1), PATIENT);
  t.is(state.pool.counts().free, 0);
  t.is(statusOf(state, undefined), undefined);
});

test('statusOf: says 50 without an ENI, and 51 when Pods live', async (t) => {
  const { deps, state } = stateOf(t);
  await attach(deps, addOf(1), PATIENT);
  state.readyEnis.clear();
  t.is(statusOf(state, undefined)?.code, 51);
  state.leases.clear();
  t.is(statusOf(state, undefined)?.code, 50);
});

test('statusOf: says 51 and names every conflict', (t) => {
  const { state } = stateOf(t);
  state.conflicts = ['rule "x" stands there', 'route "y" stands there'];
  const status = statusOf(state, undefined);
  t.is(status?.code, 51);
  t.is(status?.details, 'rule "x" stands there\nroute "y" stands there');
});

test('statusOf: says 51 while another program keeps undoing what every Pod needs, also for whole ENIs', (t) => {
  const { state } = stateOf(t);
  state.undone = 'another program keeps undoing: sysctl -w net.ipv4.ip_forward=1';
  t.like(statusOf(state, undefined), { code: 51, details: state.undone });
});

test('statusOf: with the bridge as default a node without an ENI serves once the bridge is set up', (t) => {
  const { state } = stateOf(t);
  state.readyEnis.clear();
  state.podCidrs = ['172.20.0.0/26'];
  state.preparedBlocks = new Set(['172.20.0.0/26']);
  t.is(statusOf(state, undefined)?.code, 50, 'another default: ADDs need an ENI');
  state.isBridgeDefault = true;
  t.is(statusOf(state, undefined), undefined);
  t.is(enisStatusOf(state)?.code, 50, 'and it offers no address of an ENI');
  state.preparedBlocks = new Set();
  t.regex(statusOf(state, undefined)?.details ?? '', /no Pod can be on the bridge: it is not set up yet/);
  state.podCidrs = [];
  t.regex(statusOf(state, undefined)?.details ?? '', /the node has no podCIDR yet/);
});

test('statusOf: with the role uplinks names Pods of before it, whose addresses could be given again', (t) => {
  const state = new NodeState(systemClock, 'uplinks');
  state.leases.set('c/eth0', sampleLease('c', 'eni-a', ['10.0.0.5'], { podNamespace: 'shop', podName: 'web-0' }));
  const status = statusOf(state, undefined);
  t.is(status?.code, 51);
  t.regex(status?.msg ?? '', /^1 Pods have addresses of before --role=uplinks.*drain the node$/);
  t.is(status?.details, 'shop/web-0');
});
