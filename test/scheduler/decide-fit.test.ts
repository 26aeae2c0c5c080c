import test from 'ava';
import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import { decideFilter } from '../../scheduler/decide/decide-filter.ts';
import { decidePreemption } from '../../scheduler/decide/decide-preemption.ts';
import { decideScores } from '../../scheduler/decide/decide-scores.ts';
import { buildFitContext } from '../../scheduler/decide/fit-context.ts';
import { readPodRequest } from '../../scheduler/index/pod-request.ts';
import type { SchedulerIndex } from '../../scheduler/index/scheduler-index.ts';
import { NOW, type Objects, rebuilt } from './index-scene.ts';
import { claimOf, necOf, type PodWords, podOf, vipOf } from './scheduler-scene.ts';

function ask(index: SchedulerIndex, words: PodWords, names: readonly string[]) {
  const demand = readPodRequest(podOf(words));
  if (demand === undefined) throw new Error('the Pod asks for nothing of ours');
  const outcome = decideFilter(buildFitContext(index, demand), names, index.nodesOf(names));
  const { names: others = [], reason = '' } = outcome.otherZone ?? {};
  const otherZone = others.map((name) => ({ name, reason }));
  return { ...outcome, unresolvable: [...outcome.unresolvable, ...otherZone] };
}

const KEPT = { '10.1.0.5': 'default/web-0' };
const WEB_0 = { name: 'web-0', isStatic: true };

type Row = {
  readonly title: string;
  readonly objects: Objects;
  readonly pod: PodWords;
  /** Node -> reason; '' where it fits; `!` before what no preemption would help. */
  readonly expected: Readonly<Record<string, string>>;
};

const ROWS: readonly Row[] = [
  {
    title: 'counts Pods, kept addresses and the limit of the subnets',
    objects: {
      necs: [
        necOf({ name: 'n1', allocatable: 3, enis: [{ eniID: 'eni-1', kept: KEPT }] }),
        necOf({ name: 'n2', allocatable: 2, enis: [{ eniID: 'eni-2', kept: { '10.1.0.6': 'default/web-9' } }] }),
        necOf({ name: 'n3', maxRouteENI: 1, maxIPPerENI: 1 }),
      ],
      pods: [
        podOf({ name: 'a', nodeName: 'n1' }),
        podOf({ name: 'b', nodeName: 'n2' }),
        podOf({ name: 'c', nodeName: 'n3' }),
      ],
    },
    pod: { name: 'new' },
    expected: {
      n1: '',
      n2: 'InsufficientIPorENI (need 1, free 0 of 2)',
      n3: 'InsufficientIPorENI (need 1, free 0 of 1)',
      n4: 'NoNodeENIConfig (no VPC-CNI node, or tke-eni-ipamd has not seen it yet)',
    },
  },
  {
    title: 'does not count a Pod that is over, nor one of the host network',
    objects: {
      necs: [necOf({ name: 'n1', allocatable: 1 })],
      pods: [
        podOf({ name: 'a', nodeName: 'n1', phase: 'Succeeded' }),
        podOf({ name: 'b', nodeName: 'n1', phase: 'Failed' }),
      ],
    },
    pod: { name: 'new' },
    expected: { n1: '' },
  },
  {
    title: 'keeps the place of a kept address for its own Pod',
    objects: {
      necs: [necOf({ name: 'n1', allocatable: 1, enis: [{ eniID: 'eni-1', kept: KEPT }] })],
      claims: [claimOf({ name: 'web-0', ip: '10.1.0.5', nodeName: 'n1' })],
      vips: [vipOf('10.1.0.5', 'web-0')],
    },
    pod: WEB_0,
    expected: { n1: '' },
  },
  {
    title: 'sends a kept address to no node whose ENIs are of other subnets by its own word',
    objects: {
      necs: [
        necOf({ name: 'n1', enis: [{ eniID: 'eni-1', kept: KEPT }] }),
        necOf({ name: 'n2', spec: { subnetIDs: ['subnet-c'] }, enis: [] }),
      ],
      claims: [claimOf({ name: 'web-0', ip: '10.1.0.5', nodeName: 'n1' })],
      vips: [vipOf('10.1.0.5', 'web-0')],
    },
    pod: WEB_0,
    expected: { n1: '', n2: '!kept address 10.1.0.5 is of subnet-a, ENIs of the node are of subnet-c' },
  },
  {
    title: 'sends no Pod that keeps its address to a node that keeps none',
    objects: {
      necs: [necOf({ name: 'n1', isStatic: false }), necOf({ name: 'n2' })],
      claims: [claimOf({ name: 'web-0' })],
    },
    pod: WEB_0,
    expected: { n1: '!StaticIPDisabled (enableStaticIP of its NodeENIConfig is not true)', n2: '' },
  },
  {
    title: 'knows the subnet of a nominated address by its network',
    objects: {
      necs: [
        necOf({ name: 'n1', enis: [{ eniID: 'eni-1' }] }),
        necOf({
          name: 'n2',
          zone: 'ap-guangzhou-4',
          enis: [{ eniID: 'eni-2', subnetID: 'subnet-b', cidr: '10.2.0.0/20' }],
        }),
      ],
      claims: [claimOf({ name: 'web-0', spec: { nominatedIP: '10.2.0.7' } })],
    },
    pod: { ...WEB_0, annotations: { [POD_ANNOTATION.nominatedVpcIp]: '10.2.0.7' } },
    expected: {
      n1: '!OtherZone (kept address 10.2.0.7 is in ap-guangzhou-4)',
      n2: '',
    },
  },
  {
    title: 'holds to nominated subnets',
    objects: {
      necs: [
        necOf({ name: 'n1', maxRouteENI: 1, enis: [{ eniID: 'eni-1' }] }),
        necOf({
          name: 'n2',
          zone: 'ap-guangzhou-4',
          enis: [{ eniID: 'eni-2', subnetID: 'subnet-b', cidr: '10.2.0.0/20' }],
        }),
        necOf({
          name: 'n3',
          zone: 'ap-guangzhou-4',
          maxRouteENI: 1,
          enis: [{ eniID: 'eni-3', subnetID: 'subnet-d', cidr: '10.4.0.0/20' }],
        }),
      ],
      claims: [claimOf({ name: 'web-0' })],
    },
    pod: { ...WEB_0, annotations: { [POD_ANNOTATION.nominatedSubnets]: 'subnet-b' } },
    expected: {
      n1: '!OtherZone (nominated subnet-b is in ap-guangzhou-4)',
      n2: '',
      n3: 'ENILimitExceed (1 of 1 ENIs, none of subnet-b with room)',
    },
  },
  {
    title: 'counts exclusive ENIs, those that are kept too',
    objects: {
      necs: [
        necOf({
          name: 'n1',
          spec: { maxDirectENI: 2 },
          enis: [{ eniID: 'eni-1', mode: 'direct-eni', claim: 'default/db-0' }],
        }),
        necOf({ name: 'n2', spec: { maxDirectENI: 2 } }),
      ],
      pods: [podOf({ name: 'a', nodeName: 'n1', resources: { [DIRECT_ENI_RESOURCE]: '1' } })],
    },
    pod: { name: 'new', resources: { [DIRECT_ENI_RESOURCE]: '1' } },
    expected: { n1: 'ENILimitExceed (need 1, free 0 of 2 exclusive ENIs)', n2: '' },
  },
  {
    title: 'counts public addresses where their number is known',
    objects: {
      necs: [necOf({ name: 'n1', status: { maxEIPs: 1 } }), necOf({ name: 'n2' })],
      pods: [podOf({ name: 'a', nodeName: 'n1', resources: { [EIP_RESOURCE]: '1', [ENI_IP_RESOURCE]: '1' } })],
    },
    pod: { name: 'new', resources: { [EIP_RESOURCE]: '1', [ENI_IP_RESOURCE]: '1' } },
    expected: { n1: 'InsufficientEIP (need 1, free 0 of 1)', n2: '' },
  },
  {
    title: 'counts a reservation of a claim until it has run out',
    objects: {
      necs: [necOf({ name: 'n1', allocatable: 1 }), necOf({ name: 'n2', allocatable: 1 })],
      claims: [
        claimOf({ name: 'a-0', spec: { nodeName: 'n1' }, reservedAt: new Date(NOW.wallMs - 119_000).toISOString() }),
        claimOf({ name: 'a-1', spec: { nodeName: 'n2' }, reservedAt: new Date(NOW.wallMs - 121_000).toISOString() }),
      ],
    },
    pod: { name: 'new' },
    expected: { n1: 'InsufficientIPorENI (need 1, free 0 of 1)', n2: '' },
  },
  {
    title: 'asks a super node for nothing',
    objects: {
      nodes: [
        {
          apiVersion: 'v1',
          kind: 'Node',
          metadata: { name: 'eklet-1', labels: { 'node.kubernetes.io/instance-type': 'eklet' } },
        },
      ],
      claims: [claimOf({ name: 'web-0' })],
    },
    pod: WEB_0,
    expected: { 'eklet-1': '' },
  },
];

for (const { title, objects, pod, expected } of ROWS) {
  test(`decideFilter: ${title}`, (t) => {
    const names = Object.keys(expected);
    const { fitting, failed, unresolvable } = ask(rebuilt(objects), pod, names);
    const got = names.map((name) => {
      if (fitting.includes(name)) return [name, ''];
      const helpless = unresolvable.find((one) => one.name === name);
      return [name, helpless === undefined ? failed.find((one) => one.name === name)?.reason : `!${helpless.reason}`];
    });
    t.deepEqual(Object.fromEntries(got), expected);
  });
}

test('decideFilter: is worth waiting when an ENI is being bound and no node fits', (t) => {
  const coming = necOf({
    name: 'n1',
    maxRouteENI: 1,
    enis: [{ eniID: 'eni-1', subnetID: 'subnet-c', state: 'Attaching' }],
  });
  const claims = [claimOf({ name: 'web-0', ip: '10.1.0.5' })];
  const vips = [vipOf('10.1.0.5', 'web-0')];
  t.true(ask(rebuilt({ necs: [coming], claims, vips }), WEB_0, ['n1']).isWorthWaiting);
  t.false(ask(rebuilt({ necs: [coming, necOf({ name: 'n2' })], claims, vips }), WEB_0, ['n1', 'n2']).isWorthWaiting);
});

test('decideScores: has the node of the address first, then its subnet, then the emptiest', (t) => {
  const index = rebuilt({
    necs: [
      necOf({ name: 'holds', allocatable: 2, enis: [{ eniID: 'eni-1', kept: KEPT }] }),
      necOf({ name: 'subnet', enis: [{ eniID: 'eni-2' }] }),
      necOf({ name: 'fuller', enis: [{ eniID: 'eni-3' }] }),
      necOf({ name: 'other', maxRouteENI: 5, enis: [{ eniID: 'eni-4', subnetID: 'subnet-c' }] }),
    ],
    pods: Array.from({ length: 17 }, (_, at) => podOf({ name: `a-${at}`, nodeName: 'fuller' })),
    claims: [claimOf({ name: 'web-0', ip: '10.1.0.5', nodeName: 'holds' })],
    vips: [vipOf('10.1.0.5', 'web-0')],
  });
  const scoresOf = (words: PodWords) => {
    const demand = readPodRequest(podOf(words));
    if (demand === undefined) throw new Error('asks for nothing');
    const names = ['holds', 'subnet', 'fuller', 'other'];
    const scores = decideScores(buildFitContext(index, demand), names, index.nodesOf(names));
    return Object.fromEntries(scores.map(({ Host, Score }) => [Host, Score]));
  };
  t.deepEqual(scoresOf(WEB_0), { holds: 10, subnet: 8, fuller: 7, other: 4 });
  t.deepEqual(scoresOf({ name: 'new' }), { holds: 0, subnet: 4, fuller: 0, other: 10 });
});

function lookupsOf(index: ReturnType<typeof rebuilt>) {
  return {
    pod: (uid: string) => index.pod(uid),
    podsOn: (name: string) => index.podsOn(name),
    node: (name: string) => index.node(name),
  };
}

/** Names of Pods on a full node: `k` keeps its address; a number is the priority. */
const PREEMPTIONS: readonly (readonly [
  title: string,
  there: readonly string[],
  proposed: readonly string[],
  answer: readonly string[] | undefined,
])[] = [
  ['takes another where the proposed one keeps its address', ['k0', 'a1', 'b2'], ['k0'], ['a1', 'k0']],
  ['takes the lowest of others', ['k0', 'b3', 'a2'], ['k0'], ['a2', 'k0']],
  ['takes none of the same or a higher priority', ['k0', 'a10', 'b20'], ['k0'], undefined],
  ['takes none that keeps its address', ['k0', 'k1'], ['k0'], undefined],
  ['adds none where the proposed ones are enough', ['a1', 'b0'], ['a1'], ['a1']],
];
for (const [title, there, proposed, answer] of PREEMPTIONS) {
  test(`decidePreemption: ${title}`, (t) => {
    const pods = there.map((name) =>
      podOf({ name, nodeName: 'n1', isStatic: name.startsWith('k'), priority: Number(name.slice(1)) }),
    );
    const index = rebuilt({ necs: [necOf({ name: 'n1', allocatable: pods.length })], pods });
    const demand = readPodRequest(podOf({ name: 'new', priority: 10 }));
    if (demand === undefined) throw new Error('asks for nothing');
    const uids = proposed.map((name) => `uid-${name}`);
    const victims = new Map([['n1', { uids, pdbViolations: 0 }]]);
    const decided = decidePreemption(buildFitContext(index, demand), victims, lookupsOf(index)).get('n1');
    t.deepEqual(
      decided,
      answer && { uids: answer.map((name) => `uid-${name}`), pdbViolations: answer.length - proposed.length },
    );
  });
}

test('decidePreemption: a Pod that needs a subnet gets the place of one on an ENI of that subnet', (t) => {
  const pods = [
    podOf({ name: 'a', nodeName: 'n1', priority: 1, ip: '10.1.0.2' }),
    podOf({ name: 'b', nodeName: 'n1', priority: 2, ip: '10.2.0.2' }),
    podOf({ name: 'c', nodeName: 'n1', priority: 3, ip: '10.2.0.3' }),
    podOf({ name: 'd', nodeName: 'n1', priority: 3, ip: '10.1.0.3' }),
  ];
  const enis = [
    { eniID: 'eni-a', ips: ['10.1.0.2', '10.1.0.3'] },
    { eniID: 'eni-b', subnetID: 'subnet-b', cidr: '10.2.0.0/20', ips: ['10.2.0.2', '10.2.0.3'] },
  ];
  const index = rebuilt({ necs: [necOf({ name: 'n1', maxIPPerENI: 2, enis })], pods });
  const annotations = { 'tke.cloud.tencent.com/nominated-eni-subnets': 'subnet-b' };
  const demand = readPodRequest(podOf({ name: 'new', priority: 10, isStatic: true, annotations }));
  if (demand === undefined) throw new Error('asks for nothing');
  const answerTo = (...uids: readonly string[]) =>
    decidePreemption(
      buildFitContext(index, demand),
      new Map([['n1', { uids, pdbViolations: 0 }]]),
      lookupsOf(index),
    ).get('n1')?.uids;
  t.deepEqual(answerTo('uid-b'), ['uid-b']);
  t.deepEqual(answerTo('uid-a'), ['uid-b', 'uid-a']);
});

test('decidePreemption: adds as many as the Pod needs, of each kind, and none in vain', (t) => {
  const eip = { [ENI_IP_RESOURCE]: '1', 'tke.cloud.tencent.com/eip': '1' };
  const pods = [
    podOf({ name: 'kept', nodeName: 'n1', isStatic: true }),
    podOf({ name: 'a', nodeName: 'n1', priority: 1 }),
    podOf({ name: 'b', nodeName: 'n1', priority: 2, resources: eip }),
    podOf({ name: 'c', nodeName: 'n1', priority: 3, resources: eip }),
  ];
  const index = rebuilt({ necs: [necOf({ name: 'n1', allocatable: 4, status: { maxEIPs: 2 } })], pods });
  const demand = readPodRequest(podOf({ name: 'new', priority: 10, resources: eip }));
  if (demand === undefined) throw new Error('asks for nothing');
  const victims = new Map([['n1', { uids: ['uid-kept', 'uid-of-cpu'], pdbViolations: 1 }]]);
  t.deepEqual(decidePreemption(buildFitContext(index, demand), victims, lookupsOf(index)).get('n1'), {
    uids: ['uid-b', 'uid-kept', 'uid-of-cpu'],
    pdbViolations: 2,
  });
});

test('readPodRequest: sums containers, takes the greatest of init containers, and reads annotations where there are no resources', (t) => {
  const container = (count: string) => ({ resources: { limits: { [ENI_IP_RESOURCE]: count } } });
  const pod = podOf({ name: 'a' });
  const spec = { containers: [container('1'), container('2')], initContainers: [container('5'), container('1')] };
  t.is(readPodRequest({ ...pod, spec })?.routeIps, 5);
  const byAnnotation = podOf({
    name: 'a',
    resources: {},
    annotations: { [POD_ANNOTATION.networks]: 'tke-direct-eni' },
  });
  t.like(readPodRequest(byAnnotation), { routeIps: 0, exclusiveEnis: 1, eips: 0, isStatic: false });
  const eip = podOf({ name: 'a', resources: {}, annotations: { [POD_ANNOTATION.eipAttributes]: '' } });
  t.like(readPodRequest(eip), { routeIps: 0, eips: 1 });
  t.is(readPodRequest(podOf({ name: 'a', resources: { cpu: '1' }, isStatic: true })), undefined);
  t.is(readPodRequest({ spec: { containers: 'none' }, metadata: 7 }), undefined);
});

test('a refusal names three of the subnets that a Pod nominates: there is one for each node', (t) => {
  const necs = ['n1', 'n2'].map((name) => necOf({ name, spec: { subnetIDs: ['subnet-a'] } }));
  const ids = Array.from({ length: 64 }, (_, at) => `subnet-far${at}`).join(',');
  const pod = { ...WEB_0, annotations: { [POD_ANNOTATION.nominatedSubnets]: ids } };
  const refusals = [...ask(rebuilt({ necs }), pod, ['n1', 'n2']).unresolvable].map(({ reason }) => reason);
  t.is(refusals.length, 2);
  for (const reason of refusals) {
    t.true(reason.includes('subnet-far0, subnet-far1, subnet-far2 and 61 more'), reason);
    t.true(reason.length < 200, reason);
  }
});
