import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { buildNodeRows, type NodeRow } from '../../../../cli/commands/cluster/build-node-rows.ts';
import { buildRouteView } from '../../../../cli/commands/cluster/find-network-problems.ts';
import { renderRoutes } from '../../../../cli/commands/cluster/render-nodes.ts';
import { CLOUD_FINALIZER, DIRECT_ENI_TAINT, ENI_IP_TAINT, STARTUP_TAINT_KEY } from '../../../../crd/names.ts';
import { unknown } from '../../../../inspection/node/known.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { addressOf, FRESH, factsOf, necObject, nodeObject, OLD, podObject } from './sample.ts';

const GRACE_MS = 600_000;
const TAINTED = { spec: { taints: [ENI_IP_TAINT] } };

function rowsOf(...objects: readonly KubeObject[]): readonly NodeRow[] {
  return buildNodeRows(factsOf(objects), GRACE_MS);
}

function readyFalse(reason: string, since: string): KubeObject {
  const conditions = [{ type: 'Ready', status: 'False', reason, message: 'm', lastTransitionTime: since }];
  return necObject(1, [], { status: { conditions } });
}

function young(node: KubeObject): KubeObject {
  return { ...node, metadata: { ...node.metadata, creationTimestamp: FRESH } };
}

/** Objects of node n1, and the problems that they tell: severity and reason. */
const PROBLEMS: Readonly<Record<string, readonly [readonly KubeObject[], readonly string[]]>> = {
  nothing: [[necObject(1, []), nodeObject('n1')], []],
  'a reason of Ready': [[readyFalse('EniQuota', FRESH), nodeObject('n1')], ['error EniQuota']],
  'a call that has just begun': [[readyFalse('CallUnderWay', FRESH), nodeObject('n1')], ['info CallUnderWay']],
  'a call that does not end': [[readyFalse('CallUnderWay', OLD), nodeObject('n1')], ['warning CallUnderWay']],
  'a Node that is gone': [[necObject(1, [])], ['warning NoNode']],
  'a Node that is not ready': [[necObject(1, []), nodeObject('n1', { isReady: false })], ['warning NodeNotReady']],
  'our taint': [[necObject(1, []), nodeObject('n1', TAINTED)], ['error Tainted']],
  'our taint on a Node that has just joined': [[necObject(1, []), young(nodeObject('n1', TAINTED))], ['info Tainted']],
  'our taint and no object': [[nodeObject('n1', TAINTED)], ['error NoNodeENIConfig']],
  'our taint of exclusive ENIs': [
    [necObject(1, []), nodeObject('n1', { spec: { taints: [DIRECT_ENI_TAINT] } })],
    ['error Tainted'],
  ],
  'a startup taint that nobody takes off': [
    [nodeObject('n1', { spec: { taints: [{ key: STARTUP_TAINT_KEY, effect: 'NoSchedule' }] } })],
    ['error NoNodeENIConfig'],
  ],
  'an object that goes': [
    [necObject(1, [], { metadata: { deletionTimestamp: OLD, finalizers: [CLOUD_FINALIZER] } }), nodeObject('n1')],
    ['info Leaving'],
  ],
  'an older state': [[necObject(1, [], { spec: { observedSupplyEpoch: 9 } }), nodeObject('n1')], ['warning OldState']],
  'a malformed field, and a reason': [
    [necObject(1, [], { spec: { maxRouteENI: -1 } }), nodeObject('n1', { isReady: false })],
    ['error Malformed', 'warning NodeNotReady'],
  ],
};

for (const [what, [objects, wanted]] of Object.entries(PROBLEMS)) {
  test(`buildNodeRows: tells ${what}`, (t) => {
    const [row] = rowsOf(...objects);
    t.deepEqual(
      row?.problems.map(({ severity, reason }) => `${severity} ${reason}`),
      wanted,
    );
  });
}

test('buildNodeRows: says how a taint of ours goes from a node without an agent', (t) => {
  const messagesOf = (...objects: readonly KubeObject[]) =>
    rowsOf(...objects)[0]?.problems.map(({ message }) => message);
  const removal = 'if tke-eni is not to run there: kubectl taint node n1 tke.cloud.tencent.com/eni-ip-unavailable-';
  const [bare = ''] = messagesOf(nodeObject('n1', TAINTED)) ?? [];
  t.true(bare.endsWith(removal), bare);
  const [unserved = ''] =
    messagesOf(necObject(1, [], { spec: { desiredRouteENIIP: undefined } }), nodeObject('n1', TAINTED)) ?? [];
  t.true(unserved.startsWith('no agent has written') && unserved.endsWith(removal), unserved);
  const [served = ''] =
    messagesOf(necObject(1, [], { spec: { desiredRouteENIIP: 5 } }), nodeObject('n1', TAINTED)) ?? [];
  t.regex(served, /^the agent does not serve: /);
});

/** Sources that write conditions of a NodeENIConfig. */
const SOURCES = ['agent', 'ipamd'].flatMap(sourcesBelow);
/** `type: 'Ready'`, `const type = 'Ready'`, `const DIRECT_READY = 'DirectENIReady'`, `condition: 'DirectENIReady'`. */
const CONDITION_TYPE = /\b(?:type(?::| =)|condition:|[A-Z_]+ =) '([A-Z]\w+)'/g;

function sourcesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .filter((text) => /node-conditions\.ts'|^export function withCondition|^ +condition: '/m.test(text));
}

/** Every condition that ipamd writes into a NodeENIConfig: type, status, reason, and what of it is a problem. */
const CONDITIONS: readonly (readonly [string, 'True' | 'False', string, readonly string[]])[] = [
  ['Ready', 'True', 'SupplyMet', []],
  ['Ready', 'False', 'SubnetExhausted', ['error SubnetExhausted: m']],
  ['Ready', 'False', 'Draining', ['info Draining: m']],
  ['DirectENIReady', 'True', 'SupplyMet', []],
  ['DirectENIReady', 'False', 'InstanceENILimit', ['warning DirectENIReady: InstanceENILimit: m']],
  ['DirectENIReady', 'False', 'CallUnderWay', ['info DirectENIReady: CallUnderWay: m']],
  ['ConfigValid', 'True', 'Valid', []],
  ['ConfigValid', 'False', 'AnnotationInvalid', ['warning ConfigValid: AnnotationInvalid: m']],
  ['CloudAccepts', 'True', 'Accepted', []],
  ['CloudAccepts', 'False', 'CloudRefused', ['warning CloudAccepts: CloudRefused: m']],
];

for (const [type, status, reason, wanted] of CONDITIONS) {
  test(`buildNodeRows: condition ${type} ${status}, ${reason}`, (t) => {
    const conditions = [{ type, status, reason, message: 'm', lastTransitionTime: FRESH }];
    const [row] = rowsOf(necObject(1, [], { status: { conditions } }), nodeObject('n1'));
    t.deepEqual(
      row?.problems.map(({ severity, reason: shown, message }) => `${severity} ${shown}: ${message}`),
      wanted,
    );
  });
}

test('buildNodeRows: has a row of the table above for both values of each condition that is written', (t) => {
  const types = new Set(SOURCES.flatMap((text) => [...text.matchAll(CONDITION_TYPE)].map(([, type]) => type)));
  const written = [...types].flatMap((type) => [`${type} False`, `${type} True`]);
  const shown = new Set(CONDITIONS.map(([type, status]) => `${type} ${status}`));
  t.deepEqual(written.toSorted(), [...shown].toSorted());
});

test('buildNodeRows: has no row for a Node that is none of ours', (t) => {
  t.deepEqual(rowsOf(nodeObject('n1')), []);
});

test('buildNodeRows: counts by what an address does, and says nothing of use without Pods', (t) => {
  const addresses = [
    addressOf('10.0.1.10'),
    addressOf('10.0.1.11'),
    addressOf('10.0.1.12', 'Releasing'),
    addressOf('10.0.1.13'),
  ];
  const objects = [necObject(1, [], { addresses }), nodeObject('n1'), podObject('web-0', 'n1', ['10.0.1.10'])];
  t.deepEqual(rowsOf(...objects)[0]?.addresses, { assigned: 4, used: 1, free: 2, releasing: 1 });
  const blind = { ...factsOf(objects), pods: unknown('no right', '') };
  const [row] = buildNodeRows(blind, GRACE_MS);
  t.deepEqual(row?.addresses, { assigned: 4, used: undefined, free: undefined, releasing: 1 });
});

test('buildNodeRows: puts the heaviest problem first, then goes by name', (t) => {
  const rows = rowsOf(
    necObject(3, []),
    necObject(1, []),
    necObject(2, []),
    nodeObject('n1'),
    nodeObject('n2', { isReady: false }),
    nodeObject('n3', TAINTED),
  );
  t.deepEqual(
    rows.map(({ node }) => node),
    ['n3', 'n2', 'n1'],
  );
});

const UNROUTED = { type: 'NetworkUnavailable', status: 'True', reason: 'NoRouteCreated', message: 'no route' };
const ROUTED = { type: 'NetworkUnavailable', status: 'False', reason: 'RouteCreated', message: 'a route' };

/** A Node with a podCIDR, and its condition. */
function grNode(name: string, cidr: string, condition?: object): KubeObject {
  const node = nodeObject(name, { spec: { podCIDRs: [cidr] } });
  const conditions = [{ type: 'Ready', status: 'True' }, ...(condition === undefined ? [] : [condition])];
  return { ...node, status: { conditions } };
}

const problemsOf = (rows: readonly NodeRow[]): readonly string[] =>
  rows.flatMap(({ node, problems }) => problems.map(({ severity, reason }) => `${node} ${severity} ${reason}`));

test('buildNodeRows: tells a Node without a route of the VPC, also one without a NodeENIConfig', (t) => {
  const objects = [
    necObject(1, []),
    grNode('n1', '172.20.0.0/26', UNROUTED),
    grNode('n2', '172.20.0.64/26', UNROUTED),
    young(grNode('n3', '172.20.0.128/26', UNROUTED)),
    grNode('n4', '172.20.0.192/26', ROUTED),
    grNode('n5', '172.20.1.0/26'),
  ];
  t.deepEqual(problemsOf(rowsOf(...objects)), [
    'n1 error NetworkUnavailable',
    'n2 error NetworkUnavailable',
    'n3 info NetworkUnavailable',
  ]);
  const view = buildRouteView(factsOf(objects));
  t.deepEqual(view, { routed: 1, missing: ['n1', 'n2', 'n3'], missingCount: 3, unknown: 1 });
  if (view === undefined) return;
  t.is(
    renderRoutes(view, { width: 200, isColored: false }),
    'routes of the VPC to podCIDRs: 1 nodes have theirs, 3 have none, 1 of which no controller of routes tells\nwithout a route: n1, n2, n3\n',
  );
  t.is(buildRouteView(factsOf([grNode('n5', '172.20.1.0/26')])), undefined, 'no controller of routes is at work');
});

test('buildNodeRows: tells two Nodes with the same addresses', (t) => {
  const rows = rowsOf(
    grNode('n1', '172.20.0.0/24'),
    grNode('n2', '172.20.0.64/26'),
    grNode('n3', '172.20.0.128/26'),
    grNode('n4', '172.20.1.0/24'),
  );
  t.deepEqual(problemsOf(rows), [
    'n1 error PodCIDROverlap',
    'n1 error PodCIDROverlap',
    'n2 error PodCIDROverlap',
    'n3 error PodCIDROverlap',
  ]);
});

test('buildNodeRows: tells that webhook and agent have another default', (t) => {
  const asking = (name: string, ip: string): KubeObject => {
    const pod = podObject(name, 'n1', [ip]);
    const resources = { requests: { 'tke.cloud.tencent.com/eni-ip': '1' } };
    return { ...pod, spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'none', resources }] } };
  };
  const node = grNode('n1', '172.20.0.0/26');
  t.deepEqual(problemsOf(rowsOf(node, asking('a', '172.20.0.9'), podObject('b', 'n1', ['172.20.0.8']))), [
    'n1 warning DefaultNetworkDiffers',
  ]);
  t.deepEqual(rowsOf(node, asking('a', '10.0.1.9'), podObject('b', 'n1', ['172.20.0.8'])), []);
});
