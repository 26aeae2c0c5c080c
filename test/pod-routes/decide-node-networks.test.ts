import test from 'ava';
import { classifyError } from '../../cloud/classify-error.ts';
import { decideNodeNetworks, findLacking, keepServed } from '../../pod-routes/decide-node-networks.ts';
import type { RoutedNode } from '../../pod-routes/routed-node.ts';
import type { RoutesByPlace } from '../../pod-routes/routes-elsewhere.ts';

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
    refusal: undefined,
    lastMessageOf: () => last,
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
  t.regex(saidOf({ tried: NOTHING, refusal: errorOf('LimitExceeded') }) ?? '', /Code=LimitExceeded/);
  t.is(saidOf({ tried: NOTHING, refusal: errorOf('LimitExceeded'), last: 'as before' }), 'as before');
});

test('decideNodeNetworks: a node with one of two networks has no route', (t) => {
  const other = { ...ONE, cidr: '172.16.2.0/24' };
  t.is(saidOf({ plan: { ...PLAN, right: [other] }, code: 'LimitExceeded' }), QUOTA);
});

const NODE: RoutedNode = {
  ...{ name: 'n1', uid: 'u1', createdAt: '', podCidrs: [ONE.cidr], internalIp: ONE.gatewayIp, isReady: true },
  networkCondition: { status: 'False' },
};
const ROUTE = { routeId: 'r1', cidr: ONE.cidr, gatewayIp: ONE.gatewayIp, description: '' };

const HERE = { place: 'rtb-1', placeSetting: '--route-tables' };

/** What is said of the node when its route is refused: 'kept', 'closed', or nothing. */
function keptOf(node: RoutedNode, elsewhere: RoutesByPlace | undefined, plan: Facts['plan'] = PLAN): string {
  const networks = decideNodeNetworks({
    ...{
      plan,
      tried: NOTHING,
      failed: new Map(),
      refusal: undefined,
      attemptsOf: () => 1,
      lastMessageOf: () => 'full',
    },
  });
  const kept = keepServed(networks, findLacking(networks, plan, [node]), elsewhere, HERE);
  if (kept.unrouted.has('n1')) return 'closed';
  return kept.routed.has('n1') ? `kept: ${kept.notKept.get('n1')}` : 'left as it is';
}

test('keepServed: an open Node stays so by a route that is seen in another place, and by no other sign', (t) => {
  const there = new Map([
    ['rtb-2', []],
    ['rtb-3', [ROUTE]],
  ]);
  t.is(
    keptOf(NODE, there),
    'kept: full. A route in rtb-3 leads to it, none in rtb-1. The node stays in service, but nothing keeps that route: correct --route-tables',
  );
  t.is(keptOf({ ...NODE, networkCondition: { status: 'True' } }, there), 'closed');
  t.is(keptOf(NODE, new Map()), 'closed');
  t.is(keptOf(NODE, new Map([['rtb-3', [{ ...ROUTE, gatewayIp: '10.0.0.9' }]]])), 'closed');
  t.is(keptOf(NODE, new Map([['rtb-3', [{ ...ROUTE, isDisabled: true }]]])), 'closed');
  t.is(keptOf(NODE, undefined), 'left as it is', 'other places cannot be read');
});

test('keepServed: a route of this place that leads elsewhere, or a second network without a route, closes the Node', (t) => {
  const there = new Map([['rtb-3', [ROUTE]]]);
  const move = [{ ...ONE, route: { ...ROUTE, gatewayIp: '10.0.0.9' } }];
  t.is(keptOf(NODE, there, { ...PLAN, create: [], move }), 'closed');
  t.is(keptOf(NODE, there, { ...PLAN, create: [ONE, { ...ONE, cidr: '172.16.2.0/24' }] }), 'closed');
});
