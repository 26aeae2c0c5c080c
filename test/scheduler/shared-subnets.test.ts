import test from 'ava';
import fc from 'fast-check';
import type { SubnetSupply } from '../../crd/subnet-supply.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { decideFilter } from '../../scheduler/decide/decide-filter.ts';
import { decideFit } from '../../scheduler/decide/decide-fit.ts';
import { decideScores } from '../../scheduler/decide/decide-scores.ts';
import { buildFitContext } from '../../scheduler/decide/fit-context.ts';
import { readNec, readNode } from '../../scheduler/index/facts.ts';
import { readPodRequest } from '../../scheduler/index/pod-request.ts';
import type { SchedulerIndex } from '../../scheduler/index/scheduler-index.ts';
import { assertLaw } from '../support/law.ts';
import { NOW, type Objects, rebuilt } from './index-scene.ts';
import { claimOf, necOf, type PodWords, podOf } from './scheduler-scene.ts';

const ZONE = 'ap-guangzhou-3';

function supplyOf(words: Partial<SubnetSupply> = {}): SubnetSupply {
  return { zone: ZONE, cidr: '10.1.0.0/24', free: 3, total: 253, held: 0, common: true, ...words };
}

function withSubnets(objects: Objects, subnets: Readonly<Record<string, SubnetSupply>>): SchedulerIndex {
  const index = rebuilt(objects);
  index.setSubnets(new Map(Object.entries(subnets)));
  return index;
}

function demandOf(words: PodWords) {
  const demand = readPodRequest(podOf(words));
  if (demand === undefined) throw new Error('the Pod asks for nothing of ours');
  return demand;
}

function reasonsOf(index: SchedulerIndex, words: PodWords, names: readonly string[]) {
  const outcome = decideFilter(buildFitContext(index, demandOf(words)), names, index.nodesOf(names));
  const failed = [...outcome.failed, ...outcome.unresolvable].map(({ name, reason }) => [name, reason] as const);
  return Object.fromEntries([...outcome.fitting.map((name) => [name, ''] as const), ...failed]);
}

type Row = {
  readonly title: string;
  readonly objects: Objects;
  readonly subnets: Readonly<Record<string, SubnetSupply>>;
  readonly pod?: PodWords;
  /** Node -> reason; '' where it fits. */
  readonly expected: Readonly<Record<string, string>>;
};

const ips = (count: number, from = 10) => Array.from({ length: count }, (_, at) => `10.1.0.${from + at}`);
const eni = (name: string, count: number, subnetID = 'subnet-a') => ({
  eniID: `eni-${name}`,
  subnetID,
  ips: ips(count),
});
const NONE_LEFT = 'InsufficientIPorENI (subnet-a has 0 of 253 addresses left)';

const ROWS: readonly Row[] = [
  {
    title: 'takes off what Pods on other nodes are owed',
    objects: {
      necs: [necOf({ name: 'n1', enis: [eni('1', 0)] }), necOf({ name: 'n2', enis: [eni('2', 0)] })],
      pods: ['a', 'b', 'c'].map((name) => podOf({ name, nodeName: 'n2' })),
    },
    subnets: { 'subnet-a': supplyOf({ free: 3, held: 2 }) },
    expected: { n1: NONE_LEFT, n2: NONE_LEFT },
  },
  {
    title: 'takes off what nodes took since, of which the ConfigMap does not say yet',
    objects: { necs: [necOf({ name: 'n1', enis: [eni('1', 0)] }), necOf({ name: 'n2', enis: [eni('2', 3)] })] },
    subnets: { 'subnet-a': supplyOf({ free: 3, held: 2 }) },
    expected: { n1: NONE_LEFT, n2: '' },
  },
  {
    title: 'knows that a new ENI takes an address itself',
    objects: { necs: [necOf({ name: 'n1' })] },
    subnets: { 'subnet-a': supplyOf({ free: 1 }) },
    expected: { n1: 'InsufficientIPorENI (subnet-a has 1 of 253 addresses left, a new ENI takes one itself)' },
  },
  {
    title: 'takes another subnet of the zone for a new ENI, and none of another zone',
    objects: {
      necs: [
        necOf({ name: 'n1', enis: [eni('1', 0)] }),
        necOf({ name: 'n2', maxRouteENI: 1, enis: [eni('2', 0)] }),
        necOf({ name: 'n3', spec: { subnetIDs: ['subnet-a'] } }),
      ],
    },
    subnets: {
      'subnet-a': supplyOf({ free: 0, held: 2 }),
      'subnet-b': supplyOf({ free: 9 }),
      'subnet-z': supplyOf({ zone: 'ap-guangzhou-4' }),
    },
    expected: { n1: '', n2: NONE_LEFT, n3: NONE_LEFT },
  },
  {
    title: 'leaves subnets that must be nominated to who nominates them',
    objects: { necs: [necOf({ name: 'n1' })] },
    subnets: { 'subnet-n': supplyOf({ onlyNominated: true }) },
    expected: { n1: `InsufficientIPorENI (no ENI with room, and no subnet in ${ZONE} for another)` },
  },
  {
    title: 'gives a subnet that must be nominated to a Pod that nominates it',
    objects: {
      necs: [necOf({ name: 'n1' })],
      claims: [claimOf({ name: 'web-0', spec: { nominatedSubnetIDs: ['subnet-n'] } })],
    },
    subnets: { 'subnet-n': supplyOf({ onlyNominated: true }), 'subnet-a': supplyOf({ free: 0 }) },
    pod: { name: 'web-0', isStatic: true },
    expected: { n1: '' },
  },
  {
    title: 'asks the subnets for the address of a Pod that keeps it, whatever the node has free',
    objects: {
      necs: [necOf({ name: 'n1', enis: [eni('1', 5)] })],
      claims: [claimOf({ name: 'web-0' })],
    },
    subnets: { 'subnet-a': supplyOf({ free: 0, held: 6 }) },
    pod: { name: 'web-0', isStatic: true },
    expected: { n1: NONE_LEFT },
  },
  {
    title: 'asks nothing of a subnet that the cloud found full',
    objects: { necs: [necOf({ name: 'n1', enis: [eni('1', 0)] })] },
    subnets: { 'subnet-a': supplyOf({ free: 9, held: 1, blocked: true }) },
    expected: { n1: NONE_LEFT },
  },
  {
    title: 'is not limited by a subnet of which nothing is told',
    objects: { necs: [necOf({ name: 'n1', enis: [eni('1', 0, 'subnet-x')] })] },
    subnets: {},
    expected: { n1: '' },
  },
];

for (const { title, objects, subnets, pod = { name: 'new' }, expected } of ROWS) {
  test(`decideFilter: ${title}`, (t) => {
    t.deepEqual(reasonsOf(withSubnets(objects, subnets), pod, Object.keys(expected)), expected);
  });
}

test('decideFilter: limits nothing by subnets while ipamd tells nothing, and again when it ends to', (t) => {
  const index = rebuilt({ necs: [necOf({ name: 'n1', enis: [eni('1', 0)] })] });
  t.deepEqual(reasonsOf(index, { name: 'new' }, ['n1']), { n1: '' });
  index.setSubnets(new Map([['subnet-a', supplyOf({ free: 0, held: 1 })]]));
  t.deepEqual(reasonsOf(index, { name: 'new' }, ['n1']), { n1: NONE_LEFT });
  index.setSubnets(undefined);
  t.deepEqual(reasonsOf(index, { name: 'new' }, ['n1']), { n1: '' });
});

test('readNode: names the subnets of its new ENIs, and decideFilter asks these and no others', (t) => {
  const labels = { 'tke.cloud.tencent.com/route-eni-subnet-ids': 'subnet-b' };
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels } };
  t.deepEqual(readNode(node).subnetIds, ['subnet-b']);
  const subnets = { 'subnet-a': supplyOf({ free: 9 }), 'subnet-b': supplyOf({ free: 0 }) };
  const index = withSubnets({ nodes: [node], necs: [necOf({ name: 'n1' })] }, subnets);
  t.deepEqual(reasonsOf(index, { name: 'new' }, ['n1']), {
    n1: 'InsufficientIPorENI (subnet-b has 0 of 253 addresses left)',
  });
});

test('decideScores: spreads by what subnets have left', (t) => {
  const necs = [
    necOf({ name: 'n1', maxRouteENI: 1, enis: [eni('1', 0)] }),
    necOf({ name: 'n2', maxRouteENI: 1, enis: [eni('2', 0, 'subnet-b')] }),
  ];
  const subnets = { 'subnet-a': supplyOf({ free: 1, held: 1 }), 'subnet-b': supplyOf({ free: 90, held: 1 }) };
  const index = withSubnets({ necs }, subnets);
  const question = buildFitContext(index, demandOf({ name: 'new' }));
  const scores = decideScores(question, ['n1', 'n2'], index.nodesOf(['n1', 'n2']));
  t.deepEqual(
    scores.map(({ Score }) => Score),
    [1, 10],
  );
});

const NODES = ['n1', 'n2', 'n3', 'n4', 'n5'] as const;

/** Nodes, ipamd and the cloud for one subnet, whose words reach the scheduler late and in any order. */
class World {
  readonly bound = new Map<string, number>();
  readonly has = new Map<string, number>();
  free: number;
  #told: SubnetSupply;

  constructor(free: number) {
    this.free = free;
    this.#told = supplyOf({ free, held: NODES.length });
  }

  get told(): SubnetSupply {
    return this.#told;
  }

  /** ipamd asks for what Pods of a node are bound for, and for some more of what nobody is owed. */
  supply(name: string, warm: number): void {
    const owedTo = (one: string): number => Math.max(0, (this.bound.get(one) ?? 0) - (this.has.get(one) ?? 0));
    const owed = NODES.reduce((sum, one) => sum + owedTo(one), 0);
    const has = (this.has.get(name) ?? 0) - (this.bound.get(name) ?? 0);
    const more = has >= warm ? 0 : Math.max(0, Math.min(warm - Math.max(0, has), this.free - owed));
    const given = Math.min(owedTo(name) + more, this.free);
    this.free -= given;
    this.has.set(name, (this.has.get(name) ?? 0) + given);
  }

  /** ipamd looks at what there is. */
  look(): void {
    const held = [...this.has.values()].reduce((sum, count) => sum + count, NODES.length);
    this.#told = supplyOf({ free: this.free, held });
  }

  nec(name: string): KubeObject {
    const at = (NODES as readonly string[]).indexOf(name);
    const addresses = Array.from({ length: this.has.get(name) ?? 0 }, (_, index) => `10.1.${at}.${index + 10}`);
    const one = { eniID: `eni-${name}`, ips: addresses };
    return necOf({ name, maxRouteENI: 1, maxIPPerENI: 60, enis: [one] });
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('bind' as const), node: fc.constantFrom(...NODES) }) },
  fc.record({ kind: fc.constant('supply' as const), node: fc.constantFrom(...NODES) }),
  fc.record({ kind: fc.constant('warm' as const), node: fc.constantFrom(...NODES) }),
  fc.record({ kind: fc.constant('tell-node' as const), node: fc.constantFrom(...NODES) }),
  fc.record({ kind: fc.constant('look' as const), node: fc.constantFrom(...NODES) }),
  fc.record({ kind: fc.constant('tell-subnets' as const), node: fc.constantFrom(...NODES) }),
);

test('SchedulerIndex: nodes that share a subnet are never given more Pods than it has addresses, and in the end just as many', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(fc.integer({ min: 0, max: 20 }), fc.array(step, { maxLength: 80 }), (addresses, steps) => {
        const world = new World(addresses);
        const index = withSubnets({ necs: NODES.map((name) => world.nec(name)) }, { 'subnet-a': world.told });
        let serial = 0;
        const tryOn = (node: string): boolean => {
          const demand = demandOf({ name: `p${++serial}` });
          if (decideFit(buildFitContext(index, demand), index.node(node)) !== undefined) return false;
          index.reserve(node, demand, NOW);
          index.setPod(demand.uid, { ...demand, nodeName: node });
          world.bound.set(node, (world.bound.get(node) ?? 0) + 1);
          return true;
        };
        const total = () => [...world.bound.values()].reduce((sum, count) => sum + count, 0);
        for (const { kind, node } of steps) {
          if (kind === 'bind') tryOn(node);
          else if (kind === 'supply') world.supply(node, 0);
          else if (kind === 'warm') {
            // What a node takes for nobody is known at once by its object, and by ipamd's word later.
            world.supply(node, 2);
            index.setNec(node, readNec(world.nec(node)));
          } else if (kind === 'tell-node') index.setNec(node, readNec(world.nec(node)));
          else if (kind === 'look') world.look();
          else index.setSubnets(new Map([['subnet-a', world.told]]));
          t.true(total() <= addresses, `${total()} of ${addresses} after ${kind}`);
        }
        for (const node of NODES) index.setNec(node, readNec(world.nec(node)));
        world.look();
        index.setSubnets(new Map([['subnet-a', world.told]]));
        for (const node of NODES) while (tryOn(node));
        t.is(total(), addresses);
      }),
    { numRuns: 300 },
  );
});
