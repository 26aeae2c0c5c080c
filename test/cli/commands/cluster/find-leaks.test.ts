import test from 'ava';
import type { CloudFacts, ClusterFacts } from '../../../../cli/commands/cluster/cluster-facts.ts';
import { findLeaks, intersectLeaks } from '../../../../cli/commands/cluster/find-leaks.ts';
import { CLOUD_FINALIZER } from '../../../../crd/names.ts';
import { unknown } from '../../../../inspection/node/known.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import {
  addressOf,
  claimObject,
  cloudEni,
  cloudOf,
  FRESH,
  factsOf,
  NOW_MS,
  necObject,
  nodeObject,
  OLD,
  podObject,
  SAMPLE,
  vipObject,
} from './sample.ts';

const GRACE_MS = 600_000;
const HEALTHY_CLOUD = [cloudEni(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12']), cloudEni(2, ['10.0.2.10'])];

function idsOf(facts: ClusterFacts): readonly string[] {
  return findLeaks(facts, GRACE_MS).findings.map(({ id }) => id);
}

/** The sample with some objects replaced by their name and kind, and others added. */
function withObjects(...objects: readonly KubeObject[]): readonly KubeObject[] {
  const isReplaced = (one: KubeObject) =>
    objects.some((other) => other.kind === one.kind && other.metadata.name === one.metadata.name);
  return [...SAMPLE.filter((one) => !isReplaced(one)), ...objects];
}

const STUCK_INTENT = {
  id: 'i-1',
  action: 'AssignPrivateIpAddresses',
  phase: 'Recorded',
  leaderEpoch: 1,
  requestTimeoutSeconds: 60,
  recordedAt: OLD,
  eniID: 'eni-00000001',
  lastError: { code: 'ResourceInsufficient.Subnet', message: 'no address', at: OLD },
};

/** What is planted, and the only finding that comes of it with the names that it must say. */
const PLANTED: Readonly<
  Record<
    string,
    {
      readonly objects?: readonly KubeObject[];
      readonly cloud?: CloudFacts;
      readonly isWithoutCloud?: true;
      readonly id: string;
      readonly names: readonly string[];
    }
  >
> = {
  'an address on two nodes': {
    objects: withObjects(necObject(2, ['10.0.2.10', '10.0.1.12'], { cidr: '10.0.0.0/16' })),
    isWithoutCloud: true,
    id: 'address-on-two-enis',
    names: ['10.0.1.12', 'eni-00000001', 'eni-00000002', 'n1', 'n2'],
  },
  'an address of two Pods': {
    objects: withObjects(podObject('web-3', 'n1', ['10.0.1.10'])),
    id: 'address-of-two-pods',
    names: ['10.0.1.10', 'shop/web-0', 'shop/web-3'],
  },
  'a Pod with an address of the subnet that nobody has': {
    objects: withObjects(podObject('web-3', 'n1', ['10.0.1.77'])),
    id: 'pod-address-unlisted',
    names: ['shop/web-3', '10.0.1.77', 'n1'],
  },
  "a Pod with an ENI's own address": {
    objects: withObjects(podObject('web-3', 'n1', ['10.0.1.2'])),
    id: 'pod-address-unlisted',
    names: ['shop/web-3', "eni-00000001's own"],
  },
  'a Pod with an address of another node': {
    objects: withObjects(podObject('web-3', 'n2', ['10.0.1.12'])),
    id: 'pod-address-elsewhere',
    names: ['shop/web-3', 'n2', '10.0.1.12', 'eni-00000001 of n1'],
  },
  'a VpcIP without its Pod': {
    objects: withObjects(vipObject('10.0.1.12', 'gone-0', 1)),
    id: 'record-without-pod',
    names: ['10.0.1.12', 'shop/gone-0'],
  },
  'a VpcIP of an earlier Pod of the name': {
    objects: withObjects(
      podObject('web-0', 'n1', ['10.0.1.10'], { uid: 'uid-of-a-later-one' }),
      claimObject('web-0', { podUID: 'uid-of-a-later-one' }),
    ),
    id: 'record-without-pod',
    names: ['an earlier Pod shop/web-0'],
  },
  'a VpcIP that gives a Pod another address': {
    objects: withObjects(vipObject('10.0.1.12', 'web-0', 1)),
    id: 'record-disagrees',
    names: ['10.0.1.12', 'shop/web-0', '10.0.1.10'],
  },
  'a VpcIP on another ENI than the address': {
    objects: withObjects(vipObject('10.0.1.10', 'web-0', 1, {}, 'eni-00000002')),
    id: 'record-disagrees',
    names: ['eni-00000002', 'eni-00000001 of n1'],
  },
  'a VpcIPClaim without its Pod': {
    objects: withObjects(claimObject('gone-0')),
    id: 'record-without-pod',
    names: ['VpcIPClaim shop/gone-0'],
  },
  'a VpcENI of a node that is gone': {
    objects: withObjects({
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'VpcENI',
      metadata: { name: 'tke-9', creationTimestamp: OLD },
      spec: { mode: 'route-eni', nodeName: 'n9' },
    }),
    id: 'eni-object-stray',
    names: ['tke-9', 'n9'],
  },
  'a NodeENIConfig without its Node': {
    objects: withObjects(necObject(3, [])),
    cloud: cloudOf([...HEALTHY_CLOUD, cloudEni(3, [])]),
    id: 'node-config-stray',
    names: ['n3', '1 ENIs'],
  },
  'a NodeENIConfig with a malformed field': {
    objects: withObjects(
      necObject(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12'], { spec: { desiredRouteENIIP: 'many' } }),
    ),
    id: 'object-malformed',
    names: ['n1', 'spec.desiredRouteENIIP'],
  },
  'a call that hangs': {
    objects: withObjects(
      necObject(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12'], { status: { intents: [STUCK_INTENT] } }),
    ),
    id: 'intent-stuck',
    names: ['AssignPrivateIpAddresses', 'Recorded', '28d', 'ResourceInsufficient.Subnet'],
  },
  'a deletion that hangs': {
    objects: withObjects(
      necObject(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12'], {
        metadata: { deletionTimestamp: OLD, finalizers: [CLOUD_FINALIZER] },
      }),
    ),
    id: 'deletion-stuck',
    names: ['nec n1', CLOUD_FINALIZER],
  },
  'an ENI with our tags that nobody has': {
    cloud: cloudOf([
      ...HEALTHY_CLOUD,
      cloudEni(9, ['10.0.1.90'], { attachment: { instanceId: 'ins-other000', deviceIndex: 1 } }),
    ]),
    id: 'eni-orphaned',
    names: ['eni-00000009', 'ins-other000', '2 addresses'],
  },
  'an ENI that the cloud lacks': {
    cloud: cloudOf(HEALTHY_CLOUD.slice(1)),
    id: 'eni-missing',
    names: ['eni-00000001', 'n1', '3 addresses'],
  },
  'an address that the cloud lacks': {
    cloud: cloudOf([cloudEni(1, ['10.0.1.10', '10.0.1.11']), cloudEni(2, ['10.0.2.10'])]),
    id: 'address-missing',
    names: ['10.0.1.12', 'eni-00000001'],
  },
  'an address that only the cloud has': {
    cloud: cloudOf([cloudEni(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12', '10.0.1.66']), cloudEni(2, ['10.0.2.10'])]),
    id: 'address-unlisted',
    names: ['10.0.1.66', 'eni-00000001', 'n1'],
  },
};

for (const [what, { objects, cloud, isWithoutCloud, id, names }] of Object.entries(PLANTED)) {
  test(`findLeaks: tells ${what}, and nothing else`, (t) => {
    const seen = isWithoutCloud === true ? undefined : (cloud ?? cloudOf(HEALTHY_CLOUD));
    const { findings } = findLeaks(factsOf(objects ?? SAMPLE, seen), GRACE_MS);
    t.deepEqual(
      findings.map((found) => found.id),
      [id],
      JSON.stringify(findings),
    );
    const [found] = findings;
    for (const name of names) t.true(found?.what.includes(name), `${found?.what} lacks ${name}`);
    t.true((found?.fix.length ?? 0) > 0 && (found?.subjects.length ?? 0) > 0);
  });
}

test('findLeaks: finds nothing in a healthy cluster, with and without the cloud', (t) => {
  t.deepEqual(findLeaks(factsOf(SAMPLE, cloudOf(HEALTHY_CLOUD)), GRACE_MS), { findings: [], unseen: [] });
  t.deepEqual(findLeaks(factsOf(SAMPLE), GRACE_MS), { findings: [], unseen: [] });
});

/** What looks like a leak and is none. */
const INNOCENT: Readonly<Record<string, { readonly objects?: readonly KubeObject[]; readonly cloud?: CloudFacts }>> = {
  'a record that was just written': {
    objects: withObjects(vipObject('10.0.1.12', 'soon-0', 1, { creationTimestamp: FRESH })),
  },
  'a kept address and its claim': {
    objects: withObjects(claimObject('db-0', { deletePolicy: 'Never' }), {
      ...vipObject('10.0.1.12', 'db-0', 1),
      spec: { type: 'Pod', ip: '10.0.1.12', claimRef: { namespace: 'shop', name: 'db-0' }, nodeName: 'n1' },
    }),
  },
  "an ENI's own address": {
    objects: withObjects({
      ...vipObject('10.0.1.2', 'none', 1),
      spec: { type: 'ENI', ip: '10.0.1.2', nodeName: 'n1' },
    }),
  },
  "a Pod on the node's own bridge": {
    objects: withObjects(
      nodeObject('n1', { spec: { podCIDRs: ['10.0.1.128/25'] } }),
      podObject('gr-0', 'n1', ['10.0.1.200']),
    ),
  },
  'a Pod of a network that is not ours': { objects: withObjects(podObject('other-0', 'n1', ['172.20.0.9'])) },
  'a Pod in the network of its node': {
    objects: withObjects({ ...podObject('host-0', 'n1', ['10.0.1.10']), spec: { nodeName: 'n1', hostNetwork: true } }),
  },
  'a Pod that is over and whose address went on': {
    objects: withObjects({
      ...podObject('job-0', 'n1', ['10.0.1.10']),
      status: { phase: 'Succeeded', podIP: '10.0.1.10' },
    }),
  },
  'a call that has just begun': {
    objects: withObjects(
      necObject(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12'], {
        status: { intents: [{ ...STUCK_INTENT, recordedAt: FRESH }] },
      }),
    ),
    cloud: cloudOf([cloudEni(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12', '10.0.1.66']), cloudEni(2, ['10.0.2.10'])]),
  },
  'an ENI that was just made': {
    cloud: cloudOf([...HEALTHY_CLOUD, cloudEni(9, [], { createdAtMs: Date.parse(FRESH) })]),
  },
  'an ENI of another cluster': {
    cloud: cloudOf([
      ...HEALTHY_CLOUD,
      cloudEni(9, [], { tags: { 'tke-clusterId': 'cls-2', 'tke-created-eni': 'true', 'tke-nec-uid': 'uid-9' } }),
    ]),
  },
  'an ENI with the tags of TKE alone': {
    cloud: cloudOf([
      ...HEALTHY_CLOUD,
      cloudEni(9, [], { tags: { 'tke-clusterId': 'cls-1', 'tke-created-eni': 'true' } }),
    ]),
  },
  'an ENI that somebody made by hand': { cloud: cloudOf([...HEALTHY_CLOUD, cloudEni(9, [], { tags: {} })]) },
  'an address on its way back': {
    objects: withObjects(
      necObject(1, [], {
        addresses: [addressOf('10.0.1.10'), addressOf('10.0.1.11'), addressOf('10.0.1.12', 'Releasing')],
      }),
    ),
    cloud: cloudOf([cloudEni(1, ['10.0.1.10', '10.0.1.11']), cloudEni(2, ['10.0.2.10'])]),
  },
};

for (const [what, { objects, cloud }] of Object.entries(INNOCENT)) {
  test(`findLeaks: does not take ${what} for a leak`, (t) => {
    t.deepEqual(idsOf(factsOf(objects ?? SAMPLE, cloud ?? cloudOf(HEALTHY_CLOUD))), []);
  });
}

test('findLeaks: tells fresh things too when nothing is granted', (t) => {
  const facts = factsOf(withObjects(vipObject('10.0.1.12', 'soon-0', 1, { creationTimestamp: FRESH })));
  t.deepEqual(
    findLeaks(facts, 0).findings.map(({ id }) => id),
    ['record-without-pod'],
  );
});

test('findLeaks: says what could not be looked at, and judges nothing by it', (t) => {
  const facts = { ...factsOf(SAMPLE, cloudOf(HEALTHY_CLOUD)), pods: unknown('may not list pods', 'ask for it') };
  t.deepEqual(findLeaks(facts, GRACE_MS), {
    findings: [],
    unseen: [{ what: 'Pods', why: 'may not list pods', next: 'ask for it' }],
  });
});

test('findLeaks: takes an address that moves for a warning, a double one for an error', (t) => {
  const moving = necObject(2, [], {
    addresses: [addressOf('10.0.2.10'), addressOf('10.0.1.12', 'Releasing')],
    cidr: '10.0.0.0/16',
  });
  t.is(findLeaks(factsOf(withObjects(moving)), GRACE_MS).findings[0]?.severity, 'warning');
  const double = necObject(2, ['10.0.2.10', '10.0.1.12'], { cidr: '10.0.0.0/16' });
  t.is(findLeaks(factsOf(withObjects(double)), GRACE_MS).findings[0]?.severity, 'error');
});

test('intersectLeaks: keeps what both looks saw of the same thing', (t) => {
  const first = findLeaks(factsOf(withObjects(vipObject('10.0.1.12', 'gone-0', 1))), GRACE_MS);
  const both = withObjects(vipObject('10.0.1.12', 'gone-0', 1), claimObject('gone-1'));
  const later = findLeaks(factsOf(both, undefined, NOW_MS + 30_000), GRACE_MS);
  t.is(later.findings.length, 2);
  const { findings } = intersectLeaks(first, later);
  t.deepEqual(
    findings.map(({ subjects }) => subjects),
    [['vip:10.0.1.12']],
  );
});

test('findLeaks: cannot tell orphans when nobody says which cluster this is', (t) => {
  const { findings, unseen } = findLeaks(factsOf(SAMPLE, cloudOf(HEALTHY_CLOUD, { clusterId: undefined })), GRACE_MS);
  t.deepEqual(findings, []);
  t.like(unseen, [{ what: 'orphaned ENIs', next: 'give --cluster-id' }]);
});

test('intersectLeaks: does not call clean what the first look could not see', (t) => {
  const blind = findLeaks({ ...factsOf(SAMPLE), vips: unknown('may not list vpcips', '') }, GRACE_MS);
  const whole = findLeaks(factsOf(SAMPLE), GRACE_MS);
  t.deepEqual(
    intersectLeaks(blind, whole).unseen.map(({ what }) => what),
    ['VpcIPs'],
  );
});
