import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE } from '../../crd/names.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { KubeError } from '../../kube/kube-error.ts';
import { silentLogger } from '../../runtime/log.ts';
import { renderFilterResult } from '../../scheduler/api/render-filter-result.ts';
import { decideFilter } from '../../scheduler/decide/decide-filter.ts';
import { decideFit } from '../../scheduler/decide/decide-fit.ts';
import { buildFitContext } from '../../scheduler/decide/fit-context.ts';
import { readClaim, readNec, readNode, readVip } from '../../scheduler/index/facts.ts';
import type { Capacity } from '../../scheduler/index/node-capacity.ts';
import { readPodRequest } from '../../scheduler/index/pod-request.ts';
import { SchedulerIndex } from '../../scheduler/index/scheduler-index.ts';
import { bind } from '../../scheduler/verbs/bind.ts';
import { RecentPods } from '../../scheduler/verbs/recent-pods.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { assertLaw } from '../support/law.ts';
import { NOW, rebuilt, setClaim, TTL_MS } from './index-scene.ts';
import { claimOf, necOf, type PodWords, podOf, vipOf } from './scheduler-scene.ts';

const NODE_NAMES = ['n1', 'n2', 'n3'] as const;
const POD_NAMES = ['web-0', 'web-1', 'a', 'b'] as const;
const UIDS = ['1', '2'] as const;
const IPS = ['10.1.0.1', '10.1.0.2', '10.2.0.1'] as const;
/** Of the two subnets, and what somebody wrote by mistake: a network that covers both, and none. */
const CIDRS = ['10.1.0.0/24', '10.2.0.0/24', '10.0.0.0/14', ''] as const;
const SUBNETS = ['subnet-zone-1', 'subnet-zone-2'] as const;

const nodeName = fc.constantFrom(...NODE_NAMES);
const podName = fc.constantFrom(...POD_NAMES);
const ip = fc.constantFrom(...IPS);
const isThere = fc.boolean();

/** Everything that can happen to an index; the last of each key is what is there. */
const change = fc.oneof(
  fc.record({ kind: fc.constant('node' as const), name: nodeName, isThere, isSuper: fc.boolean() }),
  fc.record({
    kind: fc.constant('nec' as const),
    name: nodeName,
    isThere,
    zone: fc.constantFrom('zone-1', 'zone-2', ''),
    isStatic: fc.boolean(),
    maxRouteENI: fc.integer({ min: 1, max: 2 }),
    subnetIDs: fc.subarray([...SUBNETS]),
    allocatable: fc.integer({ min: 0, max: 4 }),
    kept: fc.dictionary(
      ip,
      podName.map((name) => `default/${name}`),
      { maxKeys: 2 },
    ),
    isDirect: fc.boolean(),
    wrongCidr: fc.option(fc.constantFrom(...CIDRS)),
  }),
  fc.record({
    kind: fc.constant('claim' as const),
    name: podName,
    isThere,
    ip: fc.option(ip),
    node: fc.option(nodeName),
    agoMs: fc.integer({ min: 0, max: 240_000 }),
    nominated: fc.option(fc.constantFrom(...SUBNETS)),
  }),
  fc.record({
    kind: fc.constant('vip' as const),
    ip,
    isThere,
    name: podName,
    subnet: fc.constantFrom('', ...SUBNETS),
  }),
  fc.record({
    kind: fc.constant('pod' as const),
    name: podName,
    uid: fc.constantFrom(...UIDS),
    isThere,
    node: fc.option(nodeName),
    ip: fc.option(ip),
    isOver: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('reserve' as const), name: podName, uid: fc.constantFrom(...UIDS), node: nodeName }),
);

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

function podObject({ name, uid, node, ip: address, isOver }: Extract<Change, { kind: 'pod' }>): KubeObject {
  return podOf({
    name,
    uid: `${name}-${uid}`,
    isStatic: name.startsWith('web-'),
    ...(node === null ? {} : { nodeName: node }),
    ...(address === null ? {} : { ip: address }),
    ...(isOver ? { phase: 'Failed' } : {}),
  });
}

/** A Pod as it is when it is promised a place. */
function unboundPod(name: string, uid: string): PodWords {
  return { name, uid: `${name}-${uid}`, isStatic: name.startsWith('web-') };
}

function necObject(change: Extract<Change, { kind: 'nec' }>): KubeObject {
  const { name, zone, isStatic, maxRouteENI, subnetIDs, allocatable, kept, isDirect, wrongCidr } = change;
  const cidr = zone === 'zone-1' ? '10.1.0.0/24' : '10.2.0.0/24';
  const shared = {
    eniID: `eni-${name}-1`,
    subnetID: `subnet-${zone}`,
    cidr,
    kept,
  };
  const direct = {
    eniID: `eni-${name}-2`,
    subnetID: `subnet-${zone}`,
    cidr: wrongCidr ?? cidr,
    mode: 'direct-eni',
    claim: 'default/web-1',
  } as const;
  const words = { name, zone, isStatic, maxRouteENI, allocatable, spec: { subnetIDs }, status: { maxEIPs: 0 } };
  return necOf({ ...words, enis: isDirect ? [shared, direct] : [shared] });
}

function claimObject(change: Extract<Change, { kind: 'claim' }>): KubeObject {
  const { name, ip: address, node, agoMs, nominated } = change;
  return claimOf({
    name,
    spec: {
      ...(node === null ? {} : { nodeName: node }),
      ...(nominated === null ? {} : { nominatedSubnetIDs: [nominated] }),
    },
    ...(address === null ? {} : { ip: address }),
    ...(node === null ? {} : { nodeName: node, reservedAt: new Date(NOW.wallMs - agoMs).toISOString() }),
  });
}

/** What is there after changes, by kind and key. */
class Store {
  readonly nodes = new Map<string, KubeObject>();
  readonly necs = new Map<string, KubeObject>();
  readonly claims = new Map<string, KubeObject>();
  readonly vips = new Map<string, KubeObject>();
  readonly pods = new Map<string, KubeObject>();

  apply(index: SchedulerIndex, one: Change): void {
    if (one.kind === 'reserve') {
      const demand = readPodRequest(podOf(unboundPod(one.name, one.uid)));
      const isBound = (index.pod(`${one.name}-${one.uid}`)?.nodeName ?? '') !== '';
      if (demand !== undefined && !isBound) index.reserve(one.node, demand, NOW);
    } else if (one.kind === 'node') {
      const labels = one.isSuper ? { 'node.kubernetes.io/instance-type': 'eklet' } : {};
      const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: one.name, labels } };
      index.setNode(one.name, put(this.nodes, one.name, one.isThere ? object : undefined, readNode));
    } else if (one.kind === 'nec') {
      index.setNec(one.name, put(this.necs, one.name, one.isThere ? necObject(one) : undefined, readNec));
    } else if (one.kind === 'claim') {
      const facts = put(this.claims, one.name, one.isThere ? claimObject(one) : undefined, readClaim);
      setClaim(index, one.name, facts);
    } else if (one.kind === 'vip') {
      index.setVip(
        one.ip,
        put(this.vips, one.ip, one.isThere ? vipOf(one.ip, one.name, one.subnet) : undefined, readVip),
      );
    } else {
      const uid = `${one.name}-${one.uid}`;
      index.setPod(uid, put(this.pods, uid, one.isThere ? podObject(one) : undefined, readPodRequest));
    }
  }
}

function put<T>(
  map: Map<string, KubeObject>,
  key: string,
  object: KubeObject | undefined,
  read: (object: KubeObject) => T | undefined,
): T | undefined {
  if (object === undefined) map.delete(key);
  else map.set(key, object);
  return object === undefined ? undefined : read(object);
}

/** Everything that can be asked of an index. */
function answersOf(index: SchedulerIndex) {
  return {
    sizes: index.sizes,
    nodes: [...index.nodesOf(NODE_NAMES)].map((view) => {
      if (view === undefined) return undefined;
      const { name, node, nec, capacity, eniCapacities, routeFree, supply } = view;
      // Sets are compared in their order, which says nothing.
      const sorted = (one: Capacity) => ({ ...one, keys: [...one.keys].sort() });
      const counted = capacity && { ...capacity, route: sorted(capacity.route), direct: sorted(capacity.exclusive) };
      return { name, node, nec, capacity: counted, eniCapacities, routeFree, supply };
    }),
    kept: POD_NAMES.map((name) => index.staticAddressOf({ key: `default/${name}` })),
    holders: POD_NAMES.map((name) => [...index.holdersOf(`default/${name}`)].sort()),
    zones: SUBNETS.map((id) => index.zoneOf(id)),
  };
}

/** Compares an index that took changes one by one with one that is built of what is there in the end. */
function comparesChanges(t: ExecutionContext, changes: readonly Change[]): void {
  const index = new SchedulerIndex(TTL_MS);
  const store = new Store();
  for (const one of changes) {
    store.apply(index, one);
    // What was counted once is remembered: now is the time to be wrong later.
    for (const view of index.nodesOf(NODE_NAMES))
      void [view?.capacity, view?.eniCapacities, view?.routeFree, view?.supply];
  }
  index.expire(NOW);
  const { nodes, necs, claims, vips, pods } = store;
  const fresh = rebuilt({
    ...{ nodes: [...nodes.values()], necs: [...necs.values()], claims: [...claims.values()] },
    ...{ vips: [...vips.values()], pods: [...pods.values()] },
  });
  for (const name of POD_NAMES) {
    for (const uid of UIDS) {
      const promise = index.reservationOf(`${name}-${uid}`);
      const demand = readPodRequest(podOf(unboundPod(name, uid)));
      if (promise !== undefined && demand !== undefined) fresh.reserve(promise.nodeName, demand, NOW);
    }
  }
  t.deepEqual(answersOf(index), answersOf(fresh));
}

test('SchedulerIndex: change by change, answers as one that is built of what is there', async (t) => {
  const changes = fc.array(change, { maxLength: 40 });
  await assertLaw(t, (t) => fc.property(changes, (all) => comparesChanges(t, all)), { numRuns: 1_000 });
});

const NEC: Omit<Extract<Change, { kind: 'nec' }>, 'name' | 'zone'> = {
  ...{ kind: 'nec', isThere: true, isStatic: true, maxRouteENI: 2, subnetIDs: [] },
  ...{ allocatable: 0, kept: {}, isDirect: false, wrongCidr: null },
};
const CLAIM = { kind: 'claim', isThere: true, ip: null, node: null, agoMs: 0, nominated: null } as const;
const BOUND = { kind: 'pod', name: 'web-0', uid: '1', isThere: true, node: 'n1', ip: null, isOver: false } as const;

/** What the law found once, made smaller. */
const TRACES: Readonly<Record<string, readonly Change[]>> = {
  'two nodes say networks that overlap, and one says the same again': [
    { ...NEC, name: 'n3', zone: 'zone-1' },
    { ...CLAIM, name: 'web-0', ip: '10.1.0.1' },
    { ...NEC, name: 'n1', zone: 'zone-2', isDirect: true, wrongCidr: '10.0.0.0/14' },
    { ...NEC, name: 'n3', zone: 'zone-1' },
  ],
  'a node comes into another zone, where one of its ENIs says a network that overlaps': [
    { ...NEC, name: 'n1', zone: 'zone-1' },
    { ...CLAIM, name: 'web-0', ip: '10.1.0.1' },
    { ...NEC, name: 'n2', zone: 'zone-1' },
    { ...NEC, name: 'n1', zone: 'zone-2', isDirect: true, wrongCidr: '10.0.0.0/14' },
  ],
  'the subnet of an address is told after its Pod was promised a place': [
    { ...CLAIM, name: 'b', ip: '10.2.0.1', node: 'n1' },
    { ...NEC, name: 'n1', zone: 'zone-1' },
    { kind: 'vip', ip: '10.2.0.1', isThere: true, name: 'web-0', subnet: 'subnet-zone-1' },
  ],
  'the claim of a bound Pod comes after it': [
    { ...NEC, name: 'n1', zone: 'zone-1' },
    BOUND,
    { ...CLAIM, name: 'web-0', nominated: 'subnet-zone-1' },
  ],
  'the network of a subnet is told after a Pod whose address lies in it was bound': [
    { ...NEC, name: 'n1', zone: 'zone-2' },
    { ...CLAIM, name: 'web-0', ip: '10.1.0.1' },
    BOUND,
    { ...NEC, name: 'n2', zone: 'zone-1' },
  ],
  'a Pod is promised a place before its claim comes': [
    { ...NEC, name: 'n1', zone: 'zone-1' },
    { kind: 'reserve', name: 'web-0', uid: '1', node: 'n1' },
    { ...CLAIM, name: 'web-0', nominated: 'subnet-zone-1' },
  ],
};

for (const [title, changes] of Object.entries(TRACES)) {
  test(`SchedulerIndex: answers as one that is built of what is there when ${title}`, comparesChanges, changes);
}

/** The same list all the time: what was made of it must not outlive a change. */
const ASKED = [...NODE_NAMES, 'unknown'];
const ASKING: readonly PodWords[] = [
  unboundPod('a', '1'),
  unboundPod('web-0', '1'),
  unboundPod('web-1', '1'),
  { ...unboundPod('web-0', '1'), resources: { [DIRECT_ENI_RESOURCE]: '1' } },
  { ...unboundPod('web-0', '1'), resources: { [ENI_IP_RESOURCE]: '1', [EIP_RESOURCE]: '1' } },
];
/** Nodes of two zones, and static addresses, on a node and on none: few changes alone would make them. */
const KEPT: readonly Change[] = [
  { ...NEC, name: 'n1', zone: 'zone-1', allocatable: 2, kept: { '10.1.0.1': 'default/web-0' } },
  { ...NEC, name: 'n2', zone: 'zone-2', allocatable: 2 },
  { ...NEC, name: 'n3', zone: 'zone-1', allocatable: 2 },
  { ...CLAIM, name: 'web-0', ip: '10.1.0.1' },
  { ...CLAIM, name: 'web-1', ip: '10.2.0.1' },
];

/** Compares the answer for all nodes, and that for each of them, with a full check of each. */
function comparesFilter(t: ExecutionContext, index: SchedulerIndex, words: PodWords): void {
  const demand = readPodRequest(podOf(words));
  if (demand === undefined) throw new Error('the Pod asks for nothing of ours');
  const context = buildFitContext(index, demand);
  const full = { ...context, shortcut: undefined };
  const refusals = ASKED.map((node) => [node, decideFit(full, index.node(node))] as const);
  for (const [node, refusal] of refusals) t.deepEqual(decideFit(context, index.node(node)), refusal, node);
  const reasons = (isUnresolvable: boolean) =>
    Object.fromEntries(
      refusals.flatMap(([node, one]) => (one?.isUnresolvable === isUnresolvable ? [[node, one.reason] as const] : [])),
    );
  const fitting = refusals.flatMap(([node, one]) => (one === undefined ? [node] : []));
  const { isWorthWaiting, ...outcome } = decideFilter(context, ASKED, index.nodesOf(ASKED));
  t.is(isWorthWaiting, fitting.length === 0 && refusals.some(([, one]) => one?.isTransient === true));
  t.deepEqual(JSON.parse(renderFilterResult(outcome, undefined)), {
    ...{ Nodes: null, NodeNames: fitting, Error: '' },
    ...{ FailedNodes: reasons(false), FailedAndUnresolvableNodes: reasons(true) },
  });
}

test('decideFilter: decides for all nodes as for each alone, after any changes', async (t) => {
  const follows = (t: ExecutionContext, changes: readonly Change[], free: number | null): void => {
    const index = new SchedulerIndex(TTL_MS);
    const store = new Store();
    const supply = { zone: 'zone-1', cidr: '10.1.0.0/24', free: free ?? 0, total: 250, held: 0, common: true } as const;
    if (free !== null) index.setSubnets(new Map(SUBNETS.map((id) => [id, supply])));
    for (const one of KEPT) store.apply(index, one);
    for (const one of changes) {
      store.apply(index, one);
      for (const words of ASKING) comparesFilter(t, index, words);
    }
  };
  const changes = fc.array(change, { maxLength: 10 });
  const free = fc.option(fc.integer({ min: 0, max: 2 }));
  await assertLaw(t, (t) => fc.property(changes, free, (all, left) => follows(t, all, left)), { numRuns: 1_000 });
});

type Fate = 'bound' | 'refused' | 'unclear-bound' | 'unclear-not';

/** An API server that binds Pods, sometimes without a word, and tells of it later. */
class Binder {
  readonly boundTo = new Map<string, string>();
  readonly #random: () => number;
  readonly #index: SchedulerIndex;

  constructor(index: SchedulerIndex, seed: number) {
    this.#index = index;
    this.#random = seededRandom(seed);
  }

  get client(): KubeClient {
    const refuse = (): never => {
      throw new Error('not asked here');
    };
    const create: KubeClient['create'] = async (_type, object) => await this.#bind(object);
    const get: KubeClient['get'] = async (_type, { name }) => {
      const nodeName = this.boundTo.get(name);
      return podOf({ name, ...(nodeName === undefined ? {} : { nodeName }) });
    };
    return { get, create, listPage: refuse, watch: refuse, update: refuse, patch: refuse, delete: refuse };
  }

  async pause(): Promise<void> {
    for (let turns = Math.floor(this.#random() * 6); turns > 0; turns--) await Promise.resolve();
  }

  async #bind(object: KubeObject): Promise<KubeObject> {
    await this.pause();
    const { name } = object.metadata;
    const node = (object['target'] as { name: string }).name;
    const failure = (code: 'CONFLICT' | 'TIMEOUT') => new KubeError({ code, request: 'POST pods/binding', text: code });
    if (this.boundTo.has(name)) throw failure('CONFLICT');
    const fate = this.#fate();
    if (fate === 'refused') throw failure('CONFLICT');
    if (fate === 'unclear-not') throw failure('TIMEOUT');
    this.boundTo.set(name, node);
    void this.#tell(name, node);
    await this.pause();
    if (fate === 'unclear-bound') throw failure('TIMEOUT');
    return object;
  }

  async #tell(name: string, nodeName: string): Promise<void> {
    await this.pause();
    const pod = podOf({ name, nodeName });
    this.#index.setPod(pod.metadata.uid ?? '', readPodRequest(pod));
  }

  #fate(): Fate {
    const dice = this.#random();
    if (dice < 0.6) return 'bound';
    if (dice < 0.8) return 'refused';
    return dice < 0.9 ? 'unclear-bound' : 'unclear-not';
  }
}

test('bind: never gives a node more Pods than it has places, and in the end wastes none', async (t) => {
  const places = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 3, maxLength: 3 });
  await assertLaw(
    t,
    (t) =>
      fc.asyncProperty(places, fc.integer({ min: 0, max: 14 }), fc.integer(), async (capacities, count, seed) => {
        const necs = NODE_NAMES.map((name, at) => necOf({ name, allocatable: capacities[at] ?? 0 }));
        const index = rebuilt({ necs });
        const binder = new Binder(index, seed);
        const recent = new RecentPods();
        let nowMs = NOW.monotonicMs;
        const clock = { nowMs: () => NOW.wallMs, monotonicMs: () => nowMs, bootMs: () => nowMs, sleep: async () => {} };
        const deps = { index, clock, recent, client: binder.client, log: silentLogger };
        const random = seededRandom(seed + 1);
        const names = Array.from({ length: count }, (_, at) => `p-${at}`);
        for (const name of names) recent.remember(`uid-${name}`, readPodRequest(podOf({ name })) ?? 'none');
        const isWithin = () =>
          NODE_NAMES.every((node, at) => {
            const bound = [...binder.boundTo.values()].filter((one) => one === node).length;
            return bound <= (capacities[at] ?? 0);
          });
        const tryOn = async (name: string, node: string): Promise<void> => {
          await binder.pause();
          const args = { PodName: name, PodNamespace: 'default', PodUID: `uid-${name}`, Node: node };
          await bind(deps, args, new AbortController().signal);
          if (!isWithin()) throw new Error(`too many: ${JSON.stringify([...binder.boundTo])}`);
        };
        const anyNode = () => NODE_NAMES[Math.floor(random() * NODE_NAMES.length)] ?? 'n1';
        await Promise.all(
          names.map(async (name) => {
            for (let tries = 0; tries < 3; tries++) await tryOn(name, anyNode());
          }),
        );
        // Promises whose outcome was not known run out; then nothing stands in the way any more.
        nowMs += TTL_MS + 1;
        for (let tries = 0; tries < 30; tries++)
          for (const name of names) for (const node of NODE_NAMES) await tryOn(name, node);
        nowMs += TTL_MS + 1;
        for (const name of names) for (const node of NODE_NAMES) await tryOn(name, node);
        const most = capacities.reduce((sum, one) => sum + one, 0);
        t.is(binder.boundTo.size, Math.min(most, count));
      }),
    { numRuns: 60 },
  );
});
