import test from 'ava';
import { buildNodeRows, type NodeRow } from '../../../cli/cluster/build-node-rows.ts';
import { unknown } from '../../../cli/node/known.ts';
import { CLOUD_FINALIZER, ENI_IP_TAINT } from '../../../crd/names.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
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
