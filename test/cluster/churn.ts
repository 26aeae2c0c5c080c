import { setTimeout as sleep } from 'node:timers/promises';
import { EIP_CLAIMS, PODS, VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { auditCluster, keyOf, listAll } from './audit.ts';
import { WATCH_LABELS, type Watch, watchCluster } from './churn-watch.ts';
import type { Daemon } from './daemon.ts';
import { awaitServing } from './deploy.ts';
import { CLUSTER_KINDS, type Disturbance, disturbCluster, disturbNode, NODE_KINDS } from './disturbances.ts';
import { awaitPods, spreadOverNodes } from './pods.ts';
import type { RealCluster } from './real-cluster.ts';
import { awaitSettled } from './settle.ts';
import { type PodKind, workloadName, workloadOfKind } from './workloads/kinds.ts';

/** How long and how wild. */
type ChurnOptions = {
  readonly minutes: number;
  /** The same seed makes the same choices; what is in time with what is the machine's. */
  readonly seed: number;
  readonly say: (line: string) => void;
};

/** What came of it. */
type ChurnTally = {
  readonly seed: number;
  /** Disturbances by their kind. */
  readonly disturbances: Readonly<Record<string, number>>;
  readonly scalings: number;
  readonly deletions: { readonly polite: number; readonly atOnce: number };
  readonly pods: number;
  /** Pods that were ready once, by their workload. */
  readonly everReady: Readonly<Record<string, number>>;
  /** `reason: message` -> Pods that failed for it. */
  readonly failed: Readonly<Record<string, number>>;
  readonly looks: number;
  readonly addressesSeen: number;
  /** Seconds from the last disturbance until all wanted Pods were ready. */
  readonly settledSeconds: number;
  /** What must not have been, each once. Empty is good. */
  readonly violations: readonly string[];
};

/** Workloads of the churn: how many Pods each has at the start and at the end, and at most. */
type ChurnWorkload = { readonly name: string; readonly kind: PodKind; readonly rests: number; readonly most: number };

/** Those whose size changes and whose Pods are deleted. Instances of eight cores may have two EIPs for Pods each. */
const CHURNING: readonly ChurnWorkload[] = [
  { name: 'churn-a', kind: 'shared', rests: 4, most: 8 },
  { name: 'churn-b', kind: 'shared', rests: 4, most: 8 },
  { name: 'churn-c', kind: 'shared', rests: 4, most: 8 },
  { name: 'churn-static', kind: 'static', rests: 4, most: 6 },
  { name: 'churn-eip', kind: 'eip', rests: 2, most: 4 },
  { name: 'churn-exclusive', kind: 'exclusive', rests: 2, most: 3 },
  { name: 'churn-own', kind: 'static-exclusive', rests: 2, most: 2 },
];
/** Those whose Pods nobody touches. */
const STAYING: readonly ChurnWorkload[] = [
  { name: 'stay', kind: 'shared', rests: 4, most: 4 },
  { name: 'stay-exclusive', kind: 'exclusive', rests: 1, most: 1 },
];
const ALL = [...STAYING, ...CHURNING];
/** Disturbances under way at once. */
const MOST_AT_ONCE = 2;
/** Longest that something stays away, milliseconds. */
const MOST_AWAY_MS = 8_000;
/** Longest that the cluster may take to become quiet in the end, milliseconds. */
const SETTLE_MS = 240_000;

/** How often each is chosen; a reboot takes everything on a node with it, so it is rare. */
const WEIGHTS: Readonly<Record<(typeof NODE_KINDS)[number] | (typeof CLUSTER_KINDS)[number], number>> = {
  kubelet: 3,
  containerd: 3,
  'kube-proxy': 1,
  agent: 5,
  'agent-pod': 2,
  reboot: 1,
  'kube-apiserver': 2,
  etcd: 2,
  'kube-scheduler': 1,
  'kube-controller-manager': 1,
  ipamd: 3,
};

/**
 * Kills parts of a cluster at random, two at a time, while workloads of every kind grow and shrink and Pods are deleted,
 * some at once; watches the addresses all the time; then lets it rest, and audits it with Pods and without. The cluster is
 * deployed with `SETTINGS_OF_ALL_KINDS` and empty at the start, and at the end. @throws Error when it does not come to rest
 */
export async function churn(cluster: RealCluster, { minutes, seed, say }: ChurnOptions): Promise<ChurnTally> {
  const random = seededRandom(seed);
  for (const one of ALL) await cluster.apply(manifestOf(one));
  for (const { name, rests } of STAYING) await awaitPods(cluster, `app=${name}`, rests, { timeoutMs: SETTLE_MS });
  const watch = watchCluster(cluster);
  const violations = new Set<string>();
  const tell = (line: string): void => {
    if (!violations.has(line)) say(`VIOLATION ${line}`);
    violations.add(line);
  };
  const over = new AbortController();
  const watching = Promise.all([keepWatching(watch, over.signal, tell), keepPlugged(cluster, over.signal, say)]);
  const endMs = performance.now() + minutes * 60_000;
  const [disturbances, actions] = await Promise.all([
    keepDisturbing({ cluster, random: seededRandom(seed + 1), endMs, watch, say }),
    keepScaling(cluster, random, endMs),
  ]);
  const restMs = performance.now();
  say('resting');
  await rest(cluster);
  const settledSeconds = Math.round((performance.now() - restMs) / 1_000);
  say(`settled after ${settledSeconds} s`);
  for (const line of await auditCluster(cluster, { withinMs: SETTLE_MS })) tell(`with Pods: ${line}`);
  over.abort();
  await watching;
  for (const { kind, name } of ALL) await cluster.kubectl('delete', workloadName(kind, name), '--cascade=foreground');
  for (const line of await stuckObjects(cluster)) tell(line);
  for (const line of await auditCluster(cluster, { withinMs: SETTLE_MS })) tell(`without Pods: ${line}`);
  const { seen } = watch;
  return {
    seed,
    disturbances: count(disturbances),
    ...actions,
    pods: seen.pods.size,
    everReady: count([...seen.ready.values()]),
    failed: count([...seen.failed.values()]),
    looks: seen.looks,
    addressesSeen: seen.addresses,
    settledSeconds,
    violations: [...violations],
  };
}

function manifestOf({ name, kind, rests }: ChurnWorkload): string {
  const labels = {
    ...(STAYING.some((one) => one.name === name) ? { [WATCH_LABELS.stays]: 'true' } : {}),
    ...(kind.startsWith('static') ? { [WATCH_LABELS.keepsAddress]: 'true' } : {}),
  };
  return workloadOfKind(kind, name, rests, { labels, spec: spreadOverNodes(name) });
}

async function keepWatching(watch: Watch, signal: AbortSignal, tell: (line: string) => void): Promise<void> {
  while (!signal.aborted) {
    for (const line of await watch.look()) tell(line);
    await sleep(1_000);
  }
}

/**
 * Gives nodes their NICs back, as the kernel does with a real one when the namespace of its Pod dies: the small VPC's are
 * veths, which die with it. One that is missing in two looks is dead; in a single one it may be just being plugged in.
 */
async function keepPlugged(
  { nodes, cloud }: RealCluster,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  let before: readonly string[] = [];
  while (!signal.aborted) {
    const up = nodes.filter(({ machine }) => machine.isUp);
    const dead = (await Promise.all(up.map(({ name }) => cloud.vpc.deadEnis(name)))).flat();
    for (const eniId of dead.filter((one) => before.includes(one))) {
      say(`${eniId} comes back from a Pod's namespace that died`);
      await cloud.vpc.replug(eniId);
    }
    before = dead;
    await sleep(500);
  }
}

type Disturbing = {
  readonly cluster: RealCluster;
  readonly random: () => number;
  readonly endMs: number;
  readonly watch: Watch;
  readonly say: (line: string) => void;
};

/** Resolves with the kinds of all that was done, when all of it is over. */
async function keepDisturbing({ cluster, random, endMs, watch, say }: Disturbing): Promise<readonly string[]> {
  const done: string[] = [];
  const running = new Map<string, Promise<void>>();
  while (performance.now() < endMs) {
    await sleep(1_000 + random() * 6_000);
    revive(cluster, running);
    const one = choose(cluster, random);
    const awayMs = random() * MOST_AWAY_MS;
    if (running.size >= MOST_AT_ONCE || running.has(one.target)) continue;
    say(`${one.kind} of ${one.target}, away for ${Math.round(awayMs)} ms`);
    if (one.kind === 'reboot') watch.forgive(one.target);
    const run = attempt(one, awayMs, say).then(() => {
      // Its Pods come back from now on.
      if (one.kind === 'reboot') watch.forgive(one.target);
      running.delete(one.target);
      done.push(one.kind);
    });
    running.set(one.target, run);
  }
  await Promise.all(running.values());
  revive(cluster, running);
  return done;
}

/** Starts again, as an init system does, what has ended by itself: a scheduler that found no API server at its start. */
function revive(cluster: RealCluster, running: ReadonlyMap<string, unknown>): void {
  const daemons: readonly (readonly [target: string, daemons: readonly Daemon[]])[] = [
    ['kube-apiserver', [cluster.etcd, cluster.apiServer]],
    ['kube-scheduler', [cluster.scheduler]],
    ['kube-controller-manager', [cluster.controllerManager]],
    ...cluster.nodes.map((node) => [node.name, [node.containerd, node.kubelet, node.kubeProxy]] as const),
  ];
  for (const [target, own] of daemons) if (!running.has(target)) for (const daemon of own) daemon.start();
}

/** What needs the API server cannot be done while that is away: then it is left out. */
async function attempt(one: Disturbance, awayMs: number, say: (line: string) => void): Promise<void> {
  try {
    await one.run(awayMs);
  } catch (error) {
    say(`${one.kind} of ${one.target}: ${String(error).slice(0, 300)}`);
  }
}

function choose(cluster: RealCluster, random: () => number): Disturbance {
  const kinds = [...NODE_KINDS, ...CLUSTER_KINDS];
  const all = kinds.flatMap((kind) => Array.from({ length: WEIGHTS[kind] }, () => kind));
  const kind = all[Math.floor(random() * all.length)] ?? 'agent';
  const node = cluster.nodes[Math.floor(random() * cluster.nodes.length)];
  const ofNode = NODE_KINDS.find((one) => one === kind);
  if (ofNode !== undefined && node !== undefined) return disturbNode(cluster, node, ofNode);
  return disturbCluster(cluster, CLUSTER_KINDS.find((one) => one === kind) ?? 'ipamd');
}

type Actions = Pick<ChurnTally, 'scalings' | 'deletions'>;

async function keepScaling(cluster: RealCluster, random: () => number, endMs: number): Promise<Actions> {
  let scalings = 0;
  const deletions = { polite: 0, atOnce: 0 };
  while (performance.now() < endMs) {
    await sleep(300 + random() * 1_500);
    const one = CHURNING[Math.floor(random() * CHURNING.length)];
    const what = random();
    const pick = random();
    if (one === undefined) continue;
    const { kind, name, most } = one;
    if (what < 0.6) {
      const replicas = Math.floor(pick * (most + 1));
      scalings += await succeeds(cluster, ['scale', workloadName(kind, name), `--replicas=${replicas}`]);
      continue;
    }
    const pods = await listAll(cluster, PODS).catch(() => []);
    const own = pods.filter(({ metadata }) => metadata.labels?.['app'] === name);
    const pod = own[Math.floor(pick * own.length)]?.metadata.name;
    if (pod === undefined) continue;
    const remove = ['delete', 'pod', pod, '--wait=false'];
    if (what < 0.8) deletions.polite += await succeeds(cluster, remove);
    else deletions.atOnce += await succeeds(cluster, [...remove, '--grace-period=0', '--force']);
  }
  return { scalings, deletions };
}

async function succeeds(cluster: RealCluster, args: readonly string[]): Promise<0 | 1> {
  const answer = await cluster.tryKubectl([...args, '--request-timeout=5s']);
  return answer.code === 0 ? 1 : 0;
}

/** All that is wanted is there and nothing else. */
async function rest(cluster: RealCluster): Promise<void> {
  await cluster.awaitApiServer();
  // Those that were started while it was away may have ended since.
  await sleep(5_000);
  // A ReplicaSet whose Pods' ends it has missed makes none for five minutes; a new controller manager does at once.
  await cluster.controllerManager.kill();
  revive(cluster, new Map());
  for (const { kind, name, rests } of CHURNING)
    await cluster.awaitKubectl(['scale', workloadName(kind, name), `--replicas=${rests}`], `the last size of ${name}`);
  await awaitServing(cluster, undefined, SETTLE_MS);
  for (const { name, rests } of ALL) await awaitSettled(cluster, name, rests, SETTLE_MS);
}

/** Pods, and claims of what was theirs, that have not ended with their workloads. */
async function stuckObjects(cluster: RealCluster): Promise<readonly string[]> {
  const deadline = performance.now() + SETTLE_MS;
  const types = [PODS, VPC_IP_CLAIMS, EIP_CLAIMS];
  for (;;) {
    const lists = await Promise.all(
      types.map(async (type) => (await listAll(cluster, type)).map((one) => `${type.kind} ${keyOf(one)}`)),
    );
    const left = lists.flat().filter((line) => line.includes(' default/'));
    if (left.length === 0) return [];
    if (performance.now() > deadline) return left.map((line) => `${line} does not end`);
    await sleep(1_000);
  }
}

function count(words: readonly string[]): Readonly<Record<string, number>> {
  const sorted = words.toSorted();
  return Object.fromEntries([...Map.groupBy(sorted, (word) => word)].map(([word, all]) => [word, all.length]));
}
