import test from 'ava';
import { buildEniRows } from '../../../../cli/commands/cluster/build-eni-rows.ts';
import { unknown } from '../../../../inspection/node/known.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import {
  addressOf,
  cloudEni,
  cloudOf,
  directEni,
  factsOf,
  type NecParts,
  NOW_MS,
  necObject,
  OLD,
  podObject,
} from './sample.ts';

const POD = podObject('cart-0', 'n1', ['10.0.1.10']);
const FOUR = ['10.0.1.10', '10.0.1.11', '10.0.1.12', '10.0.1.13'];

/** Tells reasons and texts of each ENI of one node. */
function staysOf(ips: readonly string[], parts: NecParts = {}, others: readonly KubeObject[] = [POD]) {
  const rows = buildEniRows(factsOf([necObject(1, ips, parts), ...others]));
  return rows.map(({ stays }) => stays);
}

function reasonsOf(ips: readonly string[], parts: NecParts = {}, others?: readonly KubeObject[]): readonly string[] {
  return staysOf(ips, parts, others).map((stays) => stays.map(({ reason }) => reason).join(' '));
}

function offersOf(...ips: readonly string[]) {
  return ips.map((ip) => ({ ip, assignmentID: `a-${ip}` }));
}

function intentOf(action: string, parts: object) {
  return {
    ...{ id: `i-${action}`, action, phase: 'Accepted', leaderEpoch: 1, requestTimeoutSeconds: 30 },
    ...{ recordedAt: new Date(NOW_MS - 300_000).toISOString(), tries: 1 },
    ...parts,
  };
}

test('findEniStays: why an address without a Pod is not offered, its agent alone says', (t) => {
  t.deepEqual(reasonsOf(FOUR, { spec: { desiredRouteENIIP: 1 } }), ['in-use not-offered']);
  const [stays = []] = staysOf(FOUR, { spec: { desiredRouteENIIP: 9, desiredRouteENIPodNum: 9 } });
  t.is(stays[1]?.text, '3 addresses without a Pod are not offered: the agent says why, `tke-eni enis` on the node');
});

test('findEniStays: an agent that has not acted on the supply offers nothing, and its offers do not count', (t) => {
  const status = { supplyEpoch: 8 };
  t.deepEqual(reasonsOf(FOUR, { spec: { observedSupplyEpoch: 7 }, status }), ['in-use agent-behind']);
  const spec = { observedSupplyEpoch: 7, releasableIPs: offersOf('10.0.1.11') };
  t.deepEqual(reasonsOf(['10.0.1.11'], { spec, status }), ['offered offer-unconfirmed']);
});

test('findEniStays: an address that is unassigned is shown with its call', (t) => {
  const addresses = [addressOf('10.0.1.10'), addressOf('10.0.1.11', 'Releasing')];
  const eniID = 'eni-00000001';
  const intents = [intentOf('UnassignPrivateIpAddresses', { eniID, ips: ['10.0.1.11'] })];
  const [stays = []] = staysOf([], { spec: { desiredRouteENIIP: 1 }, addresses, status: { intents } });
  t.deepEqual(
    stays.map(({ reason }) => reason as string),
    ['in-use', 'releasing', 'call'],
  );
  t.is(stays[2]?.text, 'on record: UnassignPrivateIpAddresses Accepted for 5m, 1 try');
});

test('findEniStays: a refusal is of the ENI that it names', (t) => {
  const refusal = (message: string) => ({
    conditions: [
      { type: 'CloudAccepts', status: 'False', reason: 'CloudRefused', message, lastTransitionTime: OLD },
      { type: 'Ready', status: 'True', reason: 'SupplyMet', lastTransitionTime: OLD },
    ],
  });
  const spec = { desiredRouteENIIP: 0, releasableIPs: offersOf('10.0.1.11') };
  const ofThis = refusal('cannot take addresses off eni-00000001: UnsupportedOperation: no');
  t.deepEqual(reasonsOf(['10.0.1.11'], { spec, status: ofThis }), ['offered refused']);
  t.deepEqual(reasonsOf(['10.0.1.11'], { spec, status: refusal('cannot detach eni-other000: no') }), ['offered']);
});

test('findEniStays: a node that is torn down asks for nothing', (t) => {
  const message = 'all ENIs of this node are being released; they wait for Pods that use their addresses: shop/cart-0';
  const conditions = [{ type: 'Ready', status: 'False', reason: 'Draining', message, lastTransitionTime: OLD }];
  const [stays = []] = staysOf([FOUR[0] ?? ''], { status: { conditions } });
  t.deepEqual(stays[1], { reason: 'node-draining', text: message });
  const metadata = { deletionTimestamp: OLD, finalizers: ['networking.tke.cloud.tencent.com/cloud-resources'] };
  t.deepEqual(reasonsOf(FOUR, { metadata }), ['in-use not-offered node-draining']);
});

test('findEniStays: static addresses, with whose they are', (t) => {
  const claim = { namespace: 'shop', name: 'db-0' };
  const addresses = [{ ...addressOf('10.0.1.20'), claim }];
  const [stays = []] = staysOf([], { spec: { desiredRouteENIIP: 0 }, addresses });
  t.deepEqual(stays, [{ reason: 'static', text: '1 static address for shop/db-0' }]);
});

test('findEniStays: exclusive ENIs', (t) => {
  const eniInfos = [
    directEni('eni-0000000a', '10.0.1.10'),
    directEni('eni-0000000b', '10.0.1.21', { namespace: 'shop', name: 'big-1' }),
    { ...directEni('eni-0000000c', '10.0.1.22'), assignmentID: 'w-1' },
  ];
  const ask = (desiredDirectENI: number, spec: object = {}) =>
    reasonsOf([], { spec: { desiredDirectENI, ...spec }, status: { eniInfos } });
  t.deepEqual(ask(2), ['in-use', 'static', 'not-offered']);
  t.deepEqual(ask(1, { releasableENIs: [{ eniID: 'eni-0000000c', assignmentID: 'w-1' }] }), [
    'in-use',
    'static',
    'offered',
  ]);
});

test('findEniStays: where Pods may not be read, addresses in use count as not offered', (t) => {
  const facts = { ...factsOf([necObject(1, FOUR)]), pods: unknown('may not list pods', '') };
  t.deepEqual(
    buildEniRows(facts).flatMap(({ stays }) => stays.map(({ reason }) => reason as string)),
    ['not-offered'],
  );
});

test('findEniStays: an ENI that only the cloud has is left to the audit', (t) => {
  const [row] = buildEniRows(factsOf([necObject(1, FOUR)], cloudOf([cloudEni(3, [])])));
  t.deepEqual(
    row?.stays.map(({ reason }) => reason as string),
    ['unlisted'],
  );
});
