import test from 'ava';
import type { ClusterNec } from '../../../../cli/commands/cluster/cluster-facts.ts';
import {
  type CapacityQuestion,
  decideCapacity,
  decideEniQuota,
} from '../../../../cli/commands/cluster/decide-capacity.ts';
import { decodeNec, decodeNode, decodePod } from '../../../../cli/commands/cluster/decode-objects.ts';
import { findSharedSubnets } from '../../../../cli/commands/cluster/find-network-problems.ts';
import { renderCapacity } from '../../../../cli/commands/cluster/run-cluster.ts';
import type { PodCidrRecord } from '../../../../crd/pod-cidr-record.ts';
import type { SubnetSupply } from '../../../../crd/subnet-supply.ts';
import { known, unknown } from '../../../../inspection/node/known.ts';
import { UserError } from '../../../../runtime/user-error.ts';
import { FRESH, type NecParts, necObject, podObject } from './sample.ts';

const [Z3, Z6] = ['ap-guangzhou-3', 'ap-guangzhou-6'] as const;
const ANY: CapacityQuestion = { nodes: 1, zone: undefined, type: undefined };
const WIDE = { width: Number.POSITIVE_INFINITY, isColored: false };
const RECORD: PodCidrRecord = {
  ...{
    term: 1,
    clusterCidrs: ['192.168.0.0/20'],
    serviceCidr: '',
    maskSize: 26,
    next: 4,
    taken: [],
    held: [],
    owners: [],
  },
  blocks: { total: 64, reserved: 16, used: 44, held: 0, free: 4 },
  waiting: { count: 1, nodes: ['n9'] },
  stopped: '',
};

function nec(index: number, ips: readonly string[], parts: NecParts = {}): ClusterNec {
  const decoded = decodeNec(necObject(index, ips, parts));
  if (decoded === undefined) throw new Error('the sample has no NodeENIConfig');
  return decoded;
}

function supply(free: number, more: Partial<SubnetSupply> = {}): SubnetSupply {
  return { zone: Z3, cidr: '10.0.1.0/24', free, total: 253, held: 0, common: true, ...more };
}

type Parts = {
  readonly necs?: readonly ClusterNec[];
  readonly subnets?: Readonly<Record<string, SubnetSupply>>;
  readonly podCidrs?: PodCidrRecord;
  readonly pods?: readonly string[];
};

function decide({ necs = [], subnets, podCidrs, pods = [] }: Parts, question: Partial<CapacityQuestion> = {}) {
  const supplies = subnets === undefined ? undefined : { bySubnet: new Map(Object.entries(subnets)), malformed: [] };
  const list = pods.flatMap((ip, index) => decodePod(podObject(`p${index}`, 'n1', [ip])) ?? []);
  return decideCapacity({ necs, supplies, podCidrs, pods: known(list) }, { ...ANY, ...question });
}

function errorOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof UserError) return `${error.code} ${error.message}; ${error.next}`;
    throw error;
  }
  return 'no error';
}

test('decideCapacity: enough for exactly the nodes whose warm addresses are free', (t) => {
  // Type S5.LARGE8 has ENIs of 9 by its name; 5 warm ones and the ENI's own.
  const subnets = { 'subnet-a': supply(17) };
  t.true(decide({ subnets }, { nodes: 2, type: 'S5.LARGE8' }).isEnough);
  const capacity = decide({ subnets }, { nodes: 3, type: 'S5.LARGE8' });
  t.false(capacity.isEnough);
  const newNode = { type: 'S5.LARGE8', maxEnis: 3, ipsPerEni: 9, warmIps: 5, source: 'name' };
  t.like(capacity.zones[0], { free: 17, nodesLeft: 2, fullNodesLeft: 0, newNode: { ...newNode, addresses: 6 } });
  t.is(
    capacity.zones[0]?.problem,
    `DashboardError,Code : -1100000 , Msg : Network scale error[IP for pods in Zone ${Z3} is not enough to scale out 3 nodes.]: a node of S5.LARGE8 takes 6 addresses of one subnet; subnet-a has 17 of 253 free`,
  );
});

test('decideCapacity: a zone of the region without a subnet, with the words and the code of the product', (t) => {
  const { isEnough, zones } = decide({ subnets: { 'subnet-a': supply(200) } }, { zone: Z6 });
  t.false(isEnough);
  t.is(
    zones[0]?.problem,
    `DashboardError,Code : -1100000 , Msg : Network scale error[IP for pods in Zone ${Z6} is not enough to scale out 1 nodes.]: the cluster has no subnet in ${Z6}`,
  );
  t.is(zones[0]?.code, -1_100_000);
  const enough = decide({ subnets: { 'subnet-a': supply(200) } }, { zone: Z3 });
  t.like(enough.zones[0], { isEnough: true, code: 0, problem: '' });
});

const CLOSED: readonly (readonly ['blocked' | 'nominated', Partial<SubnetSupply>])[] = [
  ['blocked', { blocked: true }],
  ['nominated', { onlyNominated: true }],
];
for (const [state, more] of CLOSED) {
  test(`decideCapacity: a subnet that is ${state} has no addresses for new nodes`, (t) => {
    const [zone] = decide({ subnets: { 'subnet-a': supply(200, more) } }).zones;
    t.like(zone, { free: 0, nodesLeft: 0, isEnough: false });
    t.is(zone?.subnets[0]?.state, state);
  });
}

test('decideCapacity: what nodes lack goes first, with an ENI where theirs is full', (t) => {
  const lacking = nec(1, ['10.0.1.10'], { spec: { desiredRouteENIIP: 12 } });
  const [zone] = decide({ necs: [lacking], subnets: { 'subnet-1': supply(30, { held: 2 }) } }).zones;
  // Eleven addresses: eight on its ENI, three on another one.
  t.like(zone, { missing: 11, free: 30 - 8 - 4 });
});

test('decideCapacity: more Pods are the warm addresses and what nodes can still get', (t) => {
  const node = nec(1, ['10.0.1.10', '10.0.1.11', '10.0.1.12']);
  const podsOf = (free: number) => {
    const subnets = { 'subnet-1': supply(free, { held: 4 }) };
    return decide({ necs: [node], subnets, pods: ['10.0.1.10'] }).zones[0];
  };
  t.like(podsOf(0), { warm: 2, podsLeft: 2 });
  t.like(podsOf(4), { warm: 2, podsLeft: 6 });
  // Six on its ENI; a second ENI takes one itself.
  t.like(podsOf(10), { warm: 2, podsLeft: 2 + 6 + 3 });
  t.like(podsOf(200), { warm: 2, podsLeft: 17 });
  const blind = { necs: [node], podCidrs: undefined, pods: unknown('may not list pods', '') };
  const supplies = { bySubnet: new Map([['subnet-1', supply(9)]]), malformed: [] };
  t.is(decideCapacity({ ...blind, supplies }, ANY).zones[0]?.podsLeft, undefined);
});

test('decideCapacity: limits and warm target are those of the newest node of the type', (t) => {
  const old = nec(1, [], { spec: { maxRouteENI: 3, routeENIIPMinWarmTarget: 5 } });
  const spec = { maxRouteENI: 2, maxIPPerENI: 7, routeENIIPMinWarmTarget: 10 };
  const fresh = nec(2, [], { spec, metadata: { creationTimestamp: FRESH } });
  const [zone] = decide({ necs: [old, fresh], subnets: { 'subnet-a': supply(24) } }, { type: 'S5.MEDIUM4' }).zones;
  t.like(zone?.newNode, {
    maxEnis: 2,
    ipsPerEni: 7,
    warmIps: 10,
    source: 'nodes',
    addresses: 12,
    addressesWhenFull: 16,
  });
  t.is(zone?.nodesLeft, 2);
});

const BY_NAME: readonly (readonly [type: string, enis: number, ips: number])[] = [
  ['S5.SMALL1', 1, 5],
  ['S5.MEDIUM4', 3, 9],
  ['SA2.LARGE8', 3, 9],
  ['S5.2XLARGE16', 5, 19],
  ['C6.21XLARGE320', 7, 29],
];
for (const [type, maxEnis, ipsPerEni] of BY_NAME) {
  test(`decideCapacity: ${type} by its name has ${maxEnis} ENIs of ${ipsPerEni}`, (t) => {
    const [zone] = decide({ subnets: { 'subnet-a': supply(24) } }, { type }).zones;
    t.like(zone?.newNode, { maxEnis, ipsPerEni, source: 'name' });
  });
}

test('decideCapacity: without --type a node as most of the zone are', (t) => {
  const typed = (index: number, instanceType: string, zone: string) =>
    nec(index, [], { status: { instanceType, zone } });
  const necs = [typed(1, 'S5.LARGE8', Z3), typed(2, 'S5.MEDIUM4', Z6), typed(3, 'S5.MEDIUM4', Z6)];
  const subnets = { 'subnet-a': supply(24), 'subnet-b': supply(24, { zone: 'ap-guangzhou-7' }) };
  t.deepEqual(
    decide({ necs, subnets }).zones.map(({ zone, newNode }) => [zone, newNode.type]),
    [
      [Z3, 'S5.LARGE8'],
      [Z6, 'S5.MEDIUM4'],
      ['ap-guangzhou-7', 'S5.MEDIUM4'],
    ],
  );
  t.like(decide({ subnets }).zones[0]?.newNode, { type: '', maxEnis: 1, ipsPerEni: 5, source: 'smallest' });
});

test('decideCapacity: errors name the zone or type, and those that are known', (t) => {
  const parts = { necs: [nec(1, [])], subnets: { 'subnet-a': supply(24) } };
  t.is(
    errorOf(() => decide(parts, { zone: 'eu-frankfurt-1' })),
    `NOT_FOUND no zone eu-frankfurt-1 in the region of the cluster; zones of the cluster: ${Z3}`,
  );
  t.regex(
    errorOf(() => decide(parts, { type: 'BMI5' })),
    /^NOT_FOUND the limits of instance type BMI5 are not known: .*such as S5\.LARGE8; nodes have S5\.MEDIUM4$/,
  );
  t.regex(
    errorOf(() => decide({})),
    /^NOT_FOUND no ConfigMap tke-eni-subnets/,
  );
});

test('decideCapacity: blocks of podCIDRs, those of waiting nodes taken off', (t) => {
  const answer = (nodes: number, more: Partial<PodCidrRecord> = {}) =>
    decide({ podCidrs: { ...RECORD, ...more } }, { nodes });
  t.like(answer(3), { isEnough: true, zones: [], podCidrs: { nodesLeft: 3, problem: '' } });
  t.is(
    answer(4).podCidrs?.problem,
    'podCIDRs are not enough to scale out 4 nodes: blocks of /26 that are free: 4, nodes that wait for one: 1',
  );
  t.regex(answer(1, { stopped: 'another allocator' }).podCidrs?.problem ?? '', /none is given: another allocator$/);
  // Addresses alone are not enough.
  t.false(decide({ podCidrs: RECORD, subnets: { 'subnet-a': supply(200) } }, { nodes: 4 }).isEnough);
});

test('renderCapacity: zones, subnets, and the answer', (t) => {
  const necs = [nec(1, ['10.0.1.10'], { spec: { routeENIIPMinWarmTarget: 5 } })];
  const subnets = { 'subnet-1': supply(26, { held: 2 }), 'subnet-b': supply(3, { zone: Z6, cidr: '10.0.2.0/24' }) };
  const parts = { necs, subnets, podCidrs: RECORD };
  t.is(
    renderCapacity(decide(parts, { nodes: 2 }), WIDE),
    `ZONE            NODES  WARM  LACKING  FREE  MORE PODS  MORE NODES  FULL ONES  TYPE          TAKES
ap-guangzhou-3      1     1        0    26         18           4          1  S5.MEDIUM4  6 to 20
ap-guangzhou-6      0     0        0     3          0           0          0  S5.MEDIUM4  6 to 20

SUBNET    ZONE            CIDR         TOTAL  FREE  MORE NODES  STATE
subnet-1  ap-guangzhou-3  10.0.1.0/24    253    26           4  open
subnet-b  ap-guangzhou-6  10.0.2.0/24    253     3           0  open

podCIDRs: blocks for 3 more nodes
ENIs: 1, and one or more for each new node; the VPC's quota is asked for with --cloud only
DashboardError,Code : -1100000 , Msg : Network scale error[IP for pods in Zone ap-guangzhou-6 is not enough to scale out 2 nodes.]: a node of S5.MEDIUM4 takes 6 addresses of one subnet; subnet-b has 3 of 253 free
next: add a subnet of the zone to TKE_ENI_IPAMD_SUBNET_ID of ConfigMap tke-eni-ipamd, or lower the warm targets of its nodes
`,
  );
  t.regex(renderCapacity(decide(parts, { zone: Z3 }), WIDE), /\nenough for 1 more node\n$/);
});

test('decideCapacity: a node that the VPC gives no ENI for its quota makes it not enough, whatever is free', (t) => {
  const limited = (index: number, status: string) => {
    const conditions = [{ type: 'Ready', status, reason: 'ENILimit', lastTransitionTime: FRESH }];
    return nec(index, ['10.0.1.10'], { status: { conditions } });
  };
  const subnets = { 'subnet-a': supply(200) };
  const { isEnough, eniQuota } = decide({ subnets, necs: [limited(1, 'False'), nec(2, ['10.0.2.10'])] }, { nodes: 3 });
  t.false(isEnough);
  t.deepEqual(eniQuota, {
    ...{ enis: 2, reachedOn: ['n1'], isEnough: false },
    problem:
      'ENIs are not enough to scale out 3 nodes: the quota of the VPC is reached (ENILimit on n1); the cluster has 2',
  });
  const many = Array.from({ length: 7 }, (_, index) => limited(index + 1, 'False'));
  t.regex(decide({ subnets, necs: many }).eniQuota.problem, /ENILimit on n1, n2, n3, n4, n5, 2 more/);
  const of = (nodes: number) => decideEniQuota([nec(2, ['10.0.2.10'])], nodes, { limit: 10, used: 8 });
  t.like(of(2), { isEnough: true, problem: '', ofVpc: { limit: 10, used: 8 } });
  t.regex(of(3).problem, /scale out 3 nodes: the VPC has 8 ENIs and may have 10, .*; the cluster has 1$/);
  // The reason of a condition that holds is no problem.
  t.true(decide({ subnets, necs: [limited(1, 'True')] }).isEnough);
});

test('findSharedSubnets: subnets of the configuration that others use too, where nodes have podCIDRs', (t) => {
  const node = (podCIDR?: string) =>
    decodeNode({
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', uid: 'u', creationTimestamp: FRESH } },
      ...{ spec: podCIDR === undefined ? {} : { podCIDR, podCIDRs: [podCIDR] }, status: {} },
    });
  const nodes = (podCIDR?: string) => ({ nodes: known([node(podCIDR)].filter((one) => one !== undefined)) });
  const all = {
    'subnet-shared': supply(200, { held: 50 }),
    'subnet-own': supply(203, { held: 50 }),
    'subnet-behind': supply(210, { held: 50 }),
    'subnet-named': { zone: Z3, cidr: '10.0.3.0/24', free: 1, total: 253, held: 1 },
  };
  const supplies = { bySubnet: new Map(Object.entries(all)), malformed: [] };
  const texts = findSharedSubnets(nodes('192.168.0.0/26'), supplies);
  t.deepEqual(
    texts.map((text) => text.split(';')[0]?.split(':').slice(0, 2).join(':')),
    ["SubnetShared: subnet-shared has 3 addresses that are not those of this cluster's ENIs"],
  );
  t.deepEqual(findSharedSubnets(nodes(), supplies), []);
  t.deepEqual(findSharedSubnets(nodes('192.168.0.0/26'), undefined), []);
  t.deepEqual(findSharedSubnets({ nodes: unknown('no right', 'ask for it') }, supplies), []);
});
