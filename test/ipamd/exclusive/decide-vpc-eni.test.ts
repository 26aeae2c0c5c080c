import test from 'ava';
import { CLOUD_FINALIZER } from '../../../crd/names.ts';
import { decodeVpcEni, type VpcEniEntry } from '../../../ipamd/cache/vpc-eni-entry.ts';
import { decideVpcEni, type NodeEniEntry } from '../../../ipamd/exclusive/decide-vpc-eni.ts';
import { newVpcEni, withEni } from '../../../ipamd/exclusive/render-vpc-eni.ts';
import { staticEnisOf } from '../../../ipamd/exclusive/static-eni-index.ts';
import { withoutFinalizer } from '../../../kube/finalizers.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

const NOW = '2026-01-01T00:00:00Z';
const LATER = '2026-01-01T00:10:00Z';
const CLAIM = { namespace: 'ns', name: 'web-0' };

function place(eni: Partial<NodeEniEntry['eni']> = {}, nodeName = 'n1'): NodeEniEntry {
  return {
    nodeName,
    instanceId: `ins-${nodeName}`,
    zone: 'ap-guangzhou-3',
    eni: {
      eniID: 'eni-1',
      mac: '20:90:6f:00:00:01',
      name: 'tke-cls-0001',
      mode: 'direct-eni',
      state: 'Attached',
      deviceIndex: 1,
      primaryIP: '10.0.1.9',
      gateway: '10.0.1.1',
      subnetID: 'subnet-a',
      subnetCIDR: '10.0.1.0/24',
      ...eni,
    },
  };
}

/** Detached, and kept for a claim or not. */
function off(claim: NodeEniEntry['eni']['claim'] | undefined): NodeEniEntry {
  const { deviceIndex: _gone, ...eni } = place().eni;
  return { ...place(), eni: { ...eni, state: 'Detaching', ...(claim === undefined ? {} : { claim }) } };
}

function entry(change: Partial<VpcEniEntry>): VpcEniEntry {
  const object = newVpcEni(place({ claim: { ...CLAIM, uid: 'pod-1' } }), 'Attached', NOW);
  return { ...decodeVpcEni(object), ...change };
}

const NOTHING = { vpcEni: undefined, entries: [], claim: 'unknown', cloud: 'unasked' } as const;

test('decideVpcEni: says how an ENI stands where a node has it', (t) => {
  const phases = [
    place({ state: 'Attaching' }),
    place(),
    place({ state: 'Detaching' }),
    off(undefined),
    off(CLAIM),
  ].map((one) => {
    const step = decideVpcEni({ ...NOTHING, entries: [one] });
    return step.kind === 'write' ? step.phase : step.kind;
  });
  t.deepEqual(phases, ['Attaching', 'Attached', 'Detaching', 'Deleting', 'Available']);
});

test('decideVpcEni: an ENI without the tags of ipamd is neither deleted nor offered to a node', (t) => {
  for (const phase of ['Deleting', 'Attached']) {
    const step = decideVpcEni({ ...NOTHING, vpcEni: entry({ phase }), cloud: 'foreign' });
    t.is(step.kind, 'wait');
  }
});

test('decideVpcEni: goes by the node that has it, and not by the one that hands it over', (t) => {
  const taken = place({ claim: CLAIM }, 'n2');
  const step = decideVpcEni({ ...NOTHING, vpcEni: entry({ phase: 'Available' }), entries: [off(CLAIM), taken] });
  t.like(step, { kind: 'write', phase: 'Attached', entry: taken });
});

for (const { title, change, claim = 'unknown', cloud = 'unasked', step } of [
  { title: 'lets go of one of a pool that no node has', change: { claim: '', phase: 'Attached' }, step: 'let-go' },
  { title: 'asks whether the claim of a free one goes on', change: { phase: 'Available' }, step: 'ask-claim' },
  { title: 'leaves a free one whose claim goes on', change: { phase: 'Available' }, claim: 'kept', step: 'none' },
  {
    title: 'puts the end of a claim on record first',
    change: { phase: 'Available' },
    claim: 'ended',
    step: 'Deleting',
  },
  { title: 'deletes one that a person deleted', change: { phase: 'Available', isLeaving: true }, step: 'Deleting' },
  { title: 'looks before it deletes', change: { phase: 'Deleting' }, step: 'look' },
  { title: 'deletes what is on no instance', change: { phase: 'Deleting' }, cloud: 'free', step: 'delete-eni' },
  { title: 'deletes nothing that is on an instance', change: { phase: 'Deleting' }, cloud: 'bound', step: 'wait' },
  { title: 'waits for what moves', change: { phase: 'Deleting' }, cloud: 'moving', step: 'wait' },
  { title: 'lets go of what is deleted', change: { phase: 'Deleting' }, cloud: 'absent', step: 'let-go' },
  { title: 'looks for one that a node lost', change: { phase: 'Attached' }, step: 'look' },
  { title: 'frees one that a node lost', change: { phase: 'Attached' }, cloud: 'free', step: 'Available' },
  { title: 'leaves one that is on an instance', change: { phase: 'Attached' }, cloud: 'bound', step: 'wait' },
  { title: 'forgets one that is no more', change: { phase: 'Detaching' }, cloud: 'absent', step: 'let-go' },
] as const) {
  test(`decideVpcEni: ${title}`, (t) => {
    const decided = decideVpcEni({ vpcEni: entry(change), entries: [], claim, cloud });
    t.is(decided.kind === 'write' ? decided.phase : decided.kind, step);
  });
}

test('decideVpcEni: makes none for an ENI that nothing has', (t) => {
  t.is(decideVpcEni(NOTHING).kind, 'none');
});

test('withEni: keeps whom an ENI is for when it comes off its node, and since when', (t) => {
  const used = newVpcEni(place({ claim: { ...CLAIM, uid: 'pod-1' } }), 'Attached', NOW);
  t.is(decodeVpcEni(used).retainedSince, '');
  const alone = withEni(withEni(used, off(CLAIM), 'Available', NOW), undefined, 'Available', LATER);
  t.like(decodeVpcEni(alone), {
    claim: 'ns/web-0',
    nodeName: '',
    retainedSince: NOW,
    hasFinalizer: true,
    zone: 'ap-guangzhou-3',
  });
  const again = withEni(alone, place({ claim: { ...CLAIM, uid: 'pod-2' } }, 'n2'), 'Attached', LATER);
  t.like(decodeVpcEni(again), { nodeName: 'n2', retainedSince: '', phase: 'Attached' });
  t.false(decodeVpcEni(withoutFinalizer(again, CLOUD_FINALIZER)).hasFinalizer);
});

test('withEni: puts no finalizer on one of a pool, none on what is being deleted, and keeps what others wrote', (t) => {
  const pool = newVpcEni(place(), 'Attached', NOW);
  t.false(decodeVpcEni(pool).hasFinalizer);
  const going: KubeObject = {
    ...pool,
    metadata: { ...pool.metadata, deletionTimestamp: NOW, labels: { mine: 'yes' } },
    spec: { mode: 'direct-eni', securityGroups: ['sg-person'] },
  };
  const next = withEni(going, place({ claim: CLAIM }), 'Attached', NOW);
  t.deepEqual(next.metadata.finalizers ?? [], []);
  t.is(next.metadata.labels?.['mine'], 'yes');
  t.like(next['spec'], { securityGroups: ['sg-person'] });
});

test('staticEnisOf: tells which may be attached, and believes a VpcENI before a mark', (t) => {
  const free = decodeVpcEni(withEni(newVpcEni(place({ claim: CLAIM }), 'Attached', NOW), undefined, 'Available', NOW));
  const marked = [{ nodeName: 'n1', eni: place({ claim: CLAIM }).eni, claim: 'ns/web-0' }];
  t.like(staticEnisOf([free], marked).get('eni-1'), { isAttachable: true, claim: 'ns/web-0', zone: 'ap-guangzhou-3' });
  t.like(staticEnisOf([], marked).get('eni-1'), { isAttachable: false, nodeName: 'n1' });
  t.is(staticEnisOf([{ ...free, isLeaving: true }]).get('eni-1')?.isAttachable, false);
  t.is(staticEnisOf([{ ...free, gateway: '' }]).get('eni-1')?.isAttachable, false);
  t.is(staticEnisOf([{ ...free, claim: '' }]).size, 0);
});
