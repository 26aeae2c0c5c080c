import test from 'ava';
import type { Instance } from '../../../cloud/cloud.ts';
import type { Leaving } from '../../../ipamd/decide/node-view.ts';
import { type ConfigFacts, decideConfig } from '../../../ipamd/nodes/decide-config.ts';
import { decideLeaving, type LeavingFacts } from '../../../ipamd/nodes/decide-leaving.ts';
import { type InstanceRecord, presenceOf, recordDescription } from '../../../ipamd/nodes/decide-presence.ts';
import {
  decideGroupSync,
  decideSecurityGroups,
  type GroupSyncStep,
  type SecurityGroupFacts,
} from '../../../ipamd/nodes/decide-security-groups.ts';
import { decideNodeCondition, decideTaints, taintPatch } from '../../../ipamd/nodes/serving-marks.ts';

const NODE = { isInstance: true, isDisabled: false };
const JOINING: ConfigFacts = {
  node: NODE,
  instanceId: 'ins-a',
  presence: 'running',
  hasLimits: true,
  config: undefined,
};
const CONFIG = { instanceId: 'ins-a', isLeaving: false, isInUse: false };

const config = test.macro((t, change: Partial<ConfigFacts>, want: string) => {
  const step = decideConfig({ ...JOINING, ...change });
  t.is('why' in step ? `${step.kind} ${step.why}` : step.kind, want);
});
test('decideConfig: makes one for a node whose instance runs', config, {}, 'create');
test(
  'decideConfig: waits for a node of no known instance',
  config,
  { instanceId: undefined, presence: 'unknown' },
  'wait InstanceUnknown',
);
test(
  'decideConfig: waits for a node whose instance the cloud does not have',
  config,
  { presence: 'gone' },
  'wait InstanceUnknown',
);
test('decideConfig: waits for the first description', config, { presence: 'unknown' }, 'wait NotDescribed');
test('decideConfig: waits for the limits', config, { hasLimits: false }, 'wait NotDescribed');
test('decideConfig: makes none for a stopped instance', config, { presence: 'stopped' }, 'none');
test('decideConfig: makes none for a super node', config, { node: { ...NODE, isInstance: false } }, 'none');
test('decideConfig: makes none where ENIs are disabled', config, { node: { ...NODE, isDisabled: true } }, 'none');
test('decideConfig: makes none without any subnet', config, { node: { ...NODE, hasSubnets: false } }, 'none');
test('decideConfig: does nothing where there is nothing', config, { node: undefined, instanceId: undefined }, 'none');
test('decideConfig: keeps what fits', config, { config: CONFIG }, 'keep');
test(
  'decideConfig: keeps one of which the instance is not told',
  config,
  { config: { ...CONFIG, instanceId: undefined } },
  'keep',
);
test(
  'decideConfig: removes that of a node that is gone',
  config,
  { config: CONFIG, node: undefined },
  'remove NodeGone',
);
test(
  'decideConfig: keeps that of a node that is gone until all is given back',
  config,
  { config: { ...CONFIG, isInUse: true }, node: undefined },
  'none',
);
test(
  'decideConfig: removes that of another instance',
  config,
  { config: { ...CONFIG, instanceId: 'ins-b' } },
  'remove InstanceReplaced',
);
test(
  'decideConfig: leaves one alone that is leaving',
  config,
  { config: { ...CONFIG, isLeaving: true }, node: undefined },
  'none',
);

const STAYS: LeavingFacts = {
  presence: 'running',
  isNodeAbsent: false,
  absentForMs: 0,
  isConfigLeaving: false,
  isDisabled: false,
  hasLivePods: true,
};
const GRACE_MS = 300_000;
const leaving = test.macro((t, change: Partial<LeavingFacts>, want: Leaving) =>
  t.is(decideLeaving({ ...STAYS, ...change }, GRACE_MS), want),
);
const GONE = { isNodeAbsent: true, absentForMs: GRACE_MS, hasLivePods: false };
test('decideLeaving: lets a node stay', leaving, {}, 'no');
test('decideLeaving: lets a node with an idle or unknown instance stay', leaving, { presence: 'idle' }, 'no');
test(
  'decideLeaving: drains nothing when somebody deleted the configuration alone',
  leaving,
  { isConfigLeaving: true },
  'no',
);
test(
  'decideLeaving: drains when the configuration is deleted and the Node is gone by one source',
  leaving,
  { isConfigLeaving: true, isNodeAbsent: true, isReleaseHeld: true },
  'drain',
);
test('decideLeaving: drains when ENIs are disabled', leaving, { isDisabled: true, hasLivePods: false }, 'drain');
test('decideLeaving: drains a gone node within the grace', leaving, { ...GONE, absentForMs: GRACE_MS - 1 }, 'drain');
test(
  'decideLeaving: drains a gone node while Pods are not known',
  leaving,
  { ...GONE, hasLivePods: undefined },
  'drain',
);
test('decideLeaving: takes all of a node that is long gone with its Pods', leaving, GONE, 'force');
test('decideLeaving: takes all of a gone instance, Pods or not', leaving, { presence: 'gone' }, 'force');
test('decideLeaving: takes all of a stopped instance', leaving, { presence: 'stopped' }, 'force');
for (const presence of ['gone', 'stopped'] as const) {
  test(
    `decideLeaving: lets a node stay whose kubelet reports while its instance seems ${presence}`,
    leaving,
    { presence, isNodeReady: true },
    'no',
  );
}

const INSTANCE: Instance = {
  instanceId: 'ins-a',
  instanceType: 'S5.MEDIUM4',
  cores: 2,
  zone: 'ap-guangzhou-3',
  vpcId: 'vpc-a',
  subnetId: 'subnet-a',
  state: 'RUNNING',
  privateIps: ['10.0.0.1'],
  securityGroupIds: ['sg-a'],
};
const LIMITS = { secondaryEnis: 3, extensionEnis: 0, secondaryIpsPerEni: 9, source: 'api' } as const;
const STOPPED_GRACE_MS = 600_000;

/** Describes once a minute; `undefined`: not in the answer. Tells the presence after the last. */
function presenceAfter(...states: readonly (string | undefined)[]): string {
  const minute = 60_000;
  let known: InstanceRecord | undefined;
  for (const [index, state] of states.entries())
    known = recordDescription(known, state === undefined ? undefined : { ...INSTANCE, state }, index * minute);
  return presenceOf(known, (states.length - 1) * minute, STOPPED_GRACE_MS);
}
const presence = test.macro((t, states: readonly (string | undefined)[], want: string) =>
  t.is(presenceAfter(...states), want),
);
const stopped = (minutes: number) => Array.from({ length: minutes + 1 }, () => 'STOPPED');
test('presenceOf: knows nothing of what was never described', presence, [], 'unknown');
test('presenceOf: believes no first absence of a new instance', presence, [undefined], 'unknown');
test('presenceOf: believes the second', presence, [undefined, undefined], 'gone');
test('presenceOf: keeps a known instance that is missed once', presence, ['RUNNING', undefined], 'running');
test('presenceOf: forgets misses with a sight', presence, ['RUNNING', undefined, 'RUNNING', undefined], 'running');
test('presenceOf: gives up what is missed twice', presence, ['RUNNING', undefined, undefined], 'gone');
test('presenceOf: takes an instance that is being destroyed for gone', presence, ['RUNNING', 'TERMINATING'], 'gone');
test('presenceOf: takes one that waits for its destruction for gone', presence, ['SHUTDOWN'], 'gone');
test('presenceOf: waits for a stopped one', presence, stopped(9), 'idle');
test('presenceOf: gives up one that is stopped for the grace', presence, stopped(10), 'stopped');
test('presenceOf: begins again after a start', presence, [...stopped(9), 'RUNNING', ...stopped(9)], 'idle');
test('presenceOf: takes a rebooting one for running', presence, ['REBOOTING'], 'running');
test('presenceOf: takes nothing of a state that it does not know', presence, ['HIBERNATING'], 'idle');

test('recordDescription: keeps the limits of a type, and drops them when the instance is resized', (t) => {
  const known = { ...recordDescription(undefined, INSTANCE, 0), limits: LIMITS };
  t.deepEqual(recordDescription(known, { ...INSTANCE, state: 'STOPPED' }, 1).limits, LIMITS);
  t.is(recordDescription(known, { ...INSTANCE, instanceType: 'S5.2XLARGE16', cores: 8 }, 1).limits, undefined);
});

const OURS = { key: 'tke.cloud.tencent.com/eni-ip-unavailable', value: 'true', effect: 'NoSchedule' };
const BARE = { key: OURS.key, effect: OURS.effect };
const NO_EXECUTE = { key: OURS.key, effect: 'NoExecute' };
const OTHER = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
const taints = test.macro((t, given: Parameters<typeof decideTaints>, want: ReturnType<typeof decideTaints>) =>
  t.deepEqual(decideTaints(...given), want),
);
test('decideTaints: takes ours off when the agent serves', taints, [[OTHER, OURS], true, true], [OTHER]);
test('decideTaints: takes ours off whatever its value', taints, [[BARE, OTHER], true, false], [OTHER]);
test('decideTaints: leaves one of another effect', taints, [[NO_EXECUTE, OTHER], true, true], undefined);
test(
  'decideTaints: puts ours on beside the others',
  taints,
  [[OTHER, NO_EXECUTE], false, true],
  [OTHER, NO_EXECUTE, OURS],
);
test('decideTaints: puts nothing on without the flag', taints, [[OTHER], false, false], undefined);
test('decideTaints: leaves ours on while the agent does not serve', taints, [[OURS], false, false], undefined);
test('decideTaints: changes nothing that is as it should be', taints, [[OURS, OTHER], false, true], undefined);

test('taintPatch: compares the whole list before it replaces it', (t) => {
  t.deepEqual(taintPatch({ taints: [OTHER, OURS], resourceVersion: '7' }, [OTHER]), [
    { op: 'test', path: '/spec/taints', value: [OTHER, OURS] },
    { op: 'replace', path: '/spec/taints', value: [OTHER] },
  ]);
});
test('taintPatch: compares the resourceVersion where there is no list', (t) => {
  t.deepEqual(taintPatch({ taints: [], resourceVersion: '7' }, [OURS]), [
    { op: 'test', path: '/metadata/resourceVersion', value: '7' },
    { op: 'add', path: '/spec/taints', value: [OURS] },
  ]);
});

const NOW = '2026-01-01T00:10:00Z';
const SINCE = '2026-01-01T00:00:00Z';
test('decideNodeCondition: writes it where there is none', (t) => {
  const written = decideNodeCondition('ENIIPUnavailable', undefined, false, NOW);
  t.like(written, { type: 'ENIIPUnavailable', status: 'True', reason: 'NotServing', lastTransitionTime: NOW });
});
test('decideNodeCondition: one of exclusive ENIs names them', (t) => {
  const written = decideNodeCondition('DirectENIUnavailable', undefined, true, NOW);
  t.like(written, { type: 'DirectENIUnavailable', status: 'False', message: 'the agent serves exclusive ENIs' });
});
test('decideNodeCondition: writes nothing when it says so already', (t) => {
  const current = { status: 'False', reason: 'Serving', lastTransitionTime: SINCE };
  t.is(decideNodeCondition('ENIIPUnavailable', current, true, NOW), undefined);
});
test('decideNodeCondition: removes it where there is nothing to serve', (t) => {
  const current = { status: 'True', reason: 'NotServing' };
  const removal = { type: 'DirectENIUnavailable', $patch: 'delete' };
  t.deepEqual(decideNodeCondition('DirectENIUnavailable', current, undefined, NOW), removal);
  t.is(decideNodeCondition('DirectENIUnavailable', undefined, undefined, NOW), undefined);
});
test('decideNodeCondition: moves the time only with the status', (t) => {
  const current = { status: 'True', reason: 'SaidByOthers', lastTransitionTime: SINCE };
  const timeOf = (isServing: boolean) =>
    decideNodeCondition('ENIIPUnavailable', current, isServing, NOW)?.['lastTransitionTime'];
  t.is(timeOf(false), SINCE);
  t.is(timeOf(true), NOW);
});

const GROUPS: SecurityGroupFacts = {
  isEnabled: true,
  groups: ['sg-b', 'sg-a'],
  ofConfig: ['sg-d', 'sg-c'],
  ofInstance: ['sg-f', 'sg-e'],
  isCleared: false,
};
const groups = test.macro((t, change: Partial<SecurityGroupFacts>, want: readonly string[] | undefined) =>
  t.deepEqual(decideSecurityGroups({ ...GROUPS, ...change }), want),
);
const UNSET = { ofConfig: undefined };
test('decideSecurityGroups: takes those of the node first, in their order', groups, {}, ['sg-d', 'sg-c']);
test('decideSecurityGroups: takes those of the flag next', groups, UNSET, ['sg-b', 'sg-a']);
test('decideSecurityGroups: takes an empty list of the node for none', groups, { ofConfig: [] }, ['sg-b', 'sg-a']);
test('decideSecurityGroups: inherits those of the instance last', groups, { ...UNSET, groups: [] }, ['sg-f', 'sg-e']);
test('decideSecurityGroups: leaves ENIs alone without the flag', groups, { ...UNSET, isEnabled: false }, undefined);
test(
  'decideSecurityGroups: leaves ENIs alone while the instance is unknown',
  groups,
  { ...UNSET, groups: [], ofInstance: undefined },
  undefined,
);
test('decideSecurityGroups: clears none for want of any', groups, { ...UNSET, groups: [], ofInstance: [] }, undefined);
test('decideSecurityGroups: clears all where that is asked for', groups, { isCleared: true }, []);

const ENI = { eniID: 'eni-a', mac: '20:90:6f:00:00:01', state: 'Attached' } as const;
const seen = (...lists: readonly (readonly string[])[]) => ({
  eniInfos: lists.map((securityGroups) => ({ ...ENI, securityGroups })),
});
const REQUEST = { isRequested: true, isStarted: false, groups: ['sg-a', 'sg-b'], status: seen(['sg-a', 'sg-b']) };
const sync = test.macro((t, change: Partial<Parameters<typeof decideGroupSync>[0]>, want: GroupSyncStep['kind']) =>
  t.is(decideGroupSync({ ...REQUEST, ...change }).kind, want),
);
test('decideGroupSync: begins even when all looks right: that is what is asked', sync, {}, 'begin');
test(
  'decideGroupSync: goes on until every ENI has the list in its order',
  sync,
  { isStarted: true, status: seen(['sg-a', 'sg-b'], ['sg-b', 'sg-a']) },
  'none',
);
test('decideGroupSync: finishes when all have it', sync, { isStarted: true }, 'finish');
test('decideGroupSync: finishes at once where nothing is configured', sync, { groups: undefined }, 'finish');
test('decideGroupSync: finishes at once where all are cleared anyway', sync, { groups: [] }, 'finish');
test('decideGroupSync: finishes at once without ENIs', sync, { status: undefined }, 'finish');
test(
  'decideGroupSync: takes the mark off when the wish was taken back',
  sync,
  { isRequested: false, isStarted: true },
  'finish',
);
test('decideGroupSync: does nothing without a wish', sync, { isRequested: false }, 'none');
