import test from 'ava';
import { classifyError } from '../../cloud/classify-error.ts';
import { decideNodeNetworks } from '../../pod-routes/decide-node-networks.ts';

const ONE = { node: 'n1', cidr: '172.16.1.0/24', gatewayIp: '10.0.0.1' };
const PLAN = { create: [ONE], move: [], remove: [], right: [], faults: [], notKept: [], full: [] };
const NOTHING = { create: [], move: [] };
const QUOTA = 'the VPC got no route to 172.16.1.0/24: CreateGlobalRoutes: Code=LimitExceeded, Message=full';

type Facts = Parameters<typeof decideNodeNetworks>[0];
const errorOf = (code: string) => classifyError({ code, action: 'CreateGlobalRoutes', text: 'full' });

/** What is said of the node: 'routed', a message, or nothing. */
function saidOf(
  change: Partial<Facts> & { readonly code?: string; readonly attempts?: number; readonly last?: string },
) {
  const { code, attempts = 1, last, ...facts } = change;
  const { routed, unrouted } = decideNodeNetworks({
    plan: PLAN,
    tried: PLAN,
    failed: new Map(code === undefined ? [] : [[ONE.cidr, errorOf(code)]]),
    attemptsOf: () => attempts,
    isRefused: false,
    lastMessageOf: () => last,
    isServedElsewhere: () => false,
    cure: 'correct it',
    ...facts,
  });
  return routed.has('n1') ? 'routed' : unrouted.get('n1');
}

test('decideNodeNetworks: a route that is there, or was made, is told; a refusal too', (t) => {
  t.is(saidOf({ plan: { ...PLAN, create: [], right: [ONE] }, tried: NOTHING }), 'routed');
  t.is(saidOf({}), 'routed');
  t.is(saidOf({ code: 'LimitExceeded' }), QUOTA);
  t.is(saidOf({ plan: { ...PLAN, create: [], faults: [{ node: 'n1', message: 'no address' }] } }), 'no address');
});

test('decideNodeNetworks: a call without an answer says nothing at first, and the second time that there is no route', (t) => {
  for (const code of ['TIMEOUT', 'NETWORK', 'InvalidParameterValue.Duplicate']) {
    t.is(saidOf({ code }), undefined, code);
    t.is(saidOf({ code, last: 'as before' }), 'as before', code);
    t.regex(saidOf({ code, attempts: 2 }) ?? '', /the VPC got no route to 172\.16\.1\.0\/24/, code);
  }
});

test('decideNodeNetworks: what is not tried yet stays as it was said, and is told where the cloud refuses all', (t) => {
  t.is(saidOf({ tried: NOTHING }), undefined);
  t.is(saidOf({ tried: NOTHING, last: 'as before' }), 'as before');
  t.regex(saidOf({ tried: NOTHING, isRefused: true }) ?? '', /the cloud refuses new ones for a time/);
  t.is(saidOf({ tried: NOTHING, isRefused: true, last: 'as before' }), 'as before');
});

test('decideNodeNetworks: a node with one of two networks has no route', (t) => {
  const other = { ...ONE, cidr: '172.16.2.0/24' };
  t.is(saidOf({ plan: { ...PLAN, right: [other] }, code: 'LimitExceeded' }), QUOTA);
});

test('decideNodeNetworks: a node that is served from elsewhere is not closed, and is told what to correct', (t) => {
  const decided = (plan: Facts['plan'], code?: string) =>
    decideNodeNetworks({
      plan,
      tried: plan,
      failed: new Map(code === undefined ? [] : [[ONE.cidr, errorOf(code)]]),
      attemptsOf: () => 1,
      isRefused: false,
      lastMessageOf: () => undefined,
      isServedElsewhere: () => true,
      cure: 'correct it',
    });
  const refused = decided(PLAN, 'LimitExceeded');
  t.deepEqual([...refused.routed], ['n1']);
  t.is(refused.notKept.get('n1'), `${QUOTA}. The node was in service before, and stays so: correct it`);
  const noRoom = decided({ ...PLAN, create: [], full: [{ ...ONE, message: 'no room' }] });
  t.deepEqual([[...noRoom.routed], [...noRoom.unrouted.keys()]], [['n1'], []]);
});
