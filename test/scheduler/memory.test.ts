/** Bytes that the caches and the index of the scheduler extender keep for each object of a cluster: counted in the heap, after a collection. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type Followed, followCluster } from '../../scheduler/follow-cluster.ts';
import { SchedulerIndex } from '../../scheduler/index/scheduler-index.ts';
import { claimOf, necOf, podOf, vipOf } from './scheduler-scene.ts';

const NODES = 500;
const PODS_PER_NODE = 20;
const ADDRESSES_PER_NODE = 30;
/** As long as those of Deployments and StatefulSets. */
const uidOf = (serial: number): string => `6f1c2d3e-0000-4000-8000-${String(serial).padStart(12, '0')}`;
const nodeName = (index: number): string => `10.0.${index >> 8}.${index & 255}`;
const addressOf = (serial: number): string => `10.${64 + (serial >> 16)}.${(serial >> 8) & 255}.${serial & 255}`;

type Objects = Readonly<Record<string, (index: number) => KubeObject>>;
const OBJECTS: Objects = {
  nodes: (index) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName(index) } }),
  nodeeniconfigs: (index) => {
    const ips = Array.from({ length: ADDRESSES_PER_NODE }, (_, at) => addressOf(index * ADDRESSES_PER_NODE + at));
    const enis = [0, 1].map((eni) => ({ eniID: `eni-${index}x${eni}`, ips: ips.slice(eni * 15, eni * 15 + 15) }));
    return necOf({ name: nodeName(index), maxRouteENI: 5, maxIPPerENI: 19, allocatable: 60, enis });
  },
  pods: (serial) => {
    const node = Math.floor(serial / PODS_PER_NODE);
    const ip = addressOf(node * ADDRESSES_PER_NODE + (serial % PODS_PER_NODE));
    const name = `checkout-7c9d8b6f5d-${serial}`;
    return podOf({ name, uid: uidOf(serial), nodeName: nodeName(node), ip, phase: 'Running' });
  },
  vpcipclaims: (index) => claimOf({ name: `web-${index}`, ip: addressOf(100_000 + index), nodeName: nodeName(index) }),
  vpcips: (index) => vipOf(addressOf(100_000 + index), `web-${index}`),
};

const collect: () => void = (() => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

async function heapBytes(): Promise<number> {
  // Promises and timers of the last step are over by then.
  await systemClock.sleep(10);
  for (let round = 0; round < 3; round++) collect();
  return process.memoryUsage().heapUsed;
}

/** Counts the bytes of what is kept of so many objects, of each resource. */
async function keptBytes(counts: Readonly<Record<string, number>>): Promise<number> {
  const before = await heapBytes();
  const stop = new AbortController();
  const index = new SchedulerIndex(1_000);
  const deps = { clock: systemClock, log: silentLogger, random: () => 0.5, namespace: 'kube-system' };
  const followed = followCluster({ ...deps, client: clientOf(counts) }, index, new ChangeSignal(systemClock));
  const informers: readonly Followed[keyof Followed][] = Object.values(followed);
  const following = informers.map((informer) => informer.start(stop.signal));
  for (const informer of informers) await informer.synced();
  // As filter does: what is computed for each node is kept as well.
  for (let node = 0; node < NODES; node++) {
    const view = index.node(nodeName(node));
    if (view !== undefined) [view.spare, view.sourcesNumber, view.routeFree].join();
  }
  const after = await heapBytes();
  stop.abort();
  await Promise.all(following);
  return after - before;
}

function clientOf(counts: Readonly<Record<string, number>>): KubeClient {
  const refuse = (): never => {
    throw new Error('nothing is written here');
  };
  return {
    get: async () => undefined,
    listPage: async ({ plural }, { continueToken = '0', limit = 500 }) => {
      const count = counts[plural] ?? 0;
      const from = Number(continueToken);
      const to = Math.min(count, from + limit);
      // As text, like every object that an API server sends.
      const texts = Array.from({ length: to - from }, (_, at) => JSON.stringify(OBJECTS[plural]?.(from + at)));
      const items: readonly KubeObject[] = JSON.parse(`[${texts.join()}]`);
      return { items, resourceVersion: '1', ...(to < count ? { continueToken: String(to) } : {}) };
    },
    async *watch(_type, _query, signal) {
      await systemClock.sleep(2 ** 30, signal).catch(() => {});
    },
    create: refuse,
    update: refuse,
    patch: refuse,
    delete: refuse,
  };
}

/** Bytes of an object, with its name in the caches and the index: a tenth above what they take, as counts of few objects vary. */
const BOUNDS = { node: 3_800, pod: 465, claim: 640 };

test.serial('what is kept of a node, of a Pod and of a claim stays small', async (t) => {
  const nodes = { nodes: NODES, nodeeniconfigs: NODES };
  const pods = NODES * PODS_PER_NODE;
  // The first time compiles what it runs.
  await keptBytes({ ...nodes, pods: PODS_PER_NODE });
  const ofNodes = await keptBytes(nodes);
  const ofPods = (await keptBytes({ ...nodes, pods })) - ofNodes;
  const ofClaims = (await keptBytes({ ...nodes, vpcipclaims: NODES, vpcips: NODES })) - ofNodes;
  const found = { node: ofNodes / NODES, pod: ofPods / pods, claim: ofClaims / NODES };
  t.log(found);
  for (const name of ['node', 'pod', 'claim'] as const)
    t.true(found[name] <= BOUNDS[name], `${name}: ${Math.round(found[name])} bytes, at most ${BOUNDS[name]}`);
});
