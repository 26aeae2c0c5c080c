import { PODS } from '../../kube/resource-types.ts';
import { isObject } from '../../sim/support/netns.ts';
import { readPodFacts } from '../support/pod-facts.ts';
import { addressOf, hasAddress, keyOf, listAll } from './audit.ts';
import type { ClusterNode } from './cluster-node.ts';
import { namespacesOf } from './node-facts.ts';
import type { RealCluster } from './real-cluster.ts';

/** An address inside a Pod's network namespace. */
type Found = { readonly node: string; readonly path: string; readonly ip: string };

/** Watches what must hold at every moment, whatever is down. */
export type Watch = {
  /** Looks once; returns what must not be, one line each. */
  look(): Promise<readonly string[]>;
  /** Tells that a node loses its Pods' networks now: for two minutes those that stay may change on it. */
  forgive(node: string): void;
  /** What was seen so far. */
  readonly seen: {
    looks: number;
    /** Addresses found inside of network namespaces, over all looks. */
    addresses: number;
    /** Pods by their uid, those that were ready once by theirs. */
    readonly pods: Set<string>;
    /** With the name of their workload. */
    readonly ready: Map<string, string>;
    /** `reason: message` of Pods that failed. */
    readonly failed: Map<string, string>;
  };
};

/** How long the objects may tell of what was: milliseconds until two Pods with one address are taken for real. */
const STALE_MS = 60_000;
/** How long Pods may take to settle after a reboot, milliseconds. */
const SETTLE_MS = 120_000;

type Kept = Map<string, { readonly node: string; readonly identity: string }>;

/** Labels of Pods, `true`, of which more must hold. */
export const WATCH_LABELS = {
  /** It keeps its containers and its address, but for a reboot of its node. */
  stays: 'stays',
  /** Every Pod of its name has the same address. */
  keepsAddress: 'keeps-address',
} as const;

/**
 * Watches a cluster under churn. By the kernels: no address is inside of two Pods, and each is one that the cloud leads to
 * that very node. By the objects: no two Pods say that they run with one address for long, and what `WATCH_LABELS` say of
 * Pods holds.
 */
export function watchCluster(cluster: RealCluster): Watch {
  const seen: Watch['seen'] = { looks: 0, addresses: 0, pods: new Set(), ready: new Map(), failed: new Map() };
  const kept: Kept = new Map();
  const ofNames = new Map<string, string>();
  const forgiven = new Map<string, number>();
  const doubles = new Map<string, number>();
  const isForgiven = (node: string): boolean => performance.now() < (forgiven.get(node) ?? 0);
  const lookAtPods = async (): Promise<readonly string[]> => {
    // Nobody can say while the API server is away.
    const pods = await listAll(cluster, PODS).catch(() => undefined);
    if (pods === undefined) return [];
    const own = pods.filter(({ metadata }) => metadata.namespace === 'default');
    for (const pod of own) remember(seen, pod);
    return [
      ...changed(own, { kept, isForgiven }),
      ...movedNames(own, ofNames),
      ...lastingDoubles(own.filter(hasAddress), doubles),
    ];
  };
  return {
    seen,
    forgive: (node) => {
      forgiven.set(node, performance.now() + SETTLE_MS);
      for (const [name, { node: where }] of kept) if (where === node) kept.delete(name);
    },
    look: async () => {
      seen.looks += 1;
      const found = await addressesOf(cluster);
      seen.addresses += found.length;
      return [...(await kernelFindings(cluster, found)), ...(await lookAtPods())];
    },
  };
}

async function addressesOf(cluster: RealCluster): Promise<readonly Found[]> {
  const lists = await Promise.all(cluster.nodes.filter(({ machine }) => machine.isUp).map(addressesOn));
  return lists.flat();
}

async function addressesOn(node: ClusterNode): Promise<readonly Found[]> {
  try {
    const paths = namespacesOf(node).map((name) => node.machine.insidePath(`/run/netns/${name}`));
    const facts = await Promise.all(paths.map((path) => readPodFacts(path)));
    return facts.flatMap(({ path, addresses }) =>
      addresses.map((line) => ({ node: node.name, path, ip: line.split(/[ /]/)[1] ?? '' })),
    );
  } catch (error) {
    // Its power was cut while it was looked at.
    if (node.machine.isUp) throw error;
    return [];
  }
}

/** What one look finds may be two moments: only what a second look at the same places finds again is told. */
async function kernelFindings(cluster: RealCluster, found: readonly Found[]): Promise<readonly string[]> {
  const first = judge(cluster, found);
  if (first.length === 0) return [];
  const again = judge(cluster, await addressesOf(cluster));
  return first.filter((line) => again.includes(line));
}

function judge(cluster: RealCluster, found: readonly Found[]): readonly string[] {
  const { vpc } = cluster.cloud;
  return found.flatMap(({ node, path, ip }) => {
    const others = found.filter((other) => other.ip === ip && other.path !== path);
    const eniId = vpc.eniOf(ip) ?? 'no ENI';
    return [
      ...others.map((other) => `${ip} is in ${node} ${tail(path)} and in ${other.node} ${tail(other.path)}`),
      ...(vpc.enisOf(node).includes(eniId) ? [] : [`${ip} is in ${node} ${tail(path)}, in the cloud on ${eniId}`]),
    ];
  });
}

type Pod = Awaited<ReturnType<typeof listAll>>[number];

function remember(seen: Watch['seen'], pod: Pod): void {
  const uid = String(pod.metadata.uid);
  const status = isObject(pod['status']) ? pod['status'] : {};
  seen.pods.add(uid);
  if (isReady(pod)) seen.ready.set(uid, pod.metadata.labels?.['app'] ?? '');
  if (status['phase'] === 'Failed') seen.failed.set(uid, `${status['reason']}: ${status['message']}`);
}

function isReady(pod: Pod): boolean {
  const status = isObject(pod['status']) ? pod['status'] : {};
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].filter(isObject) : [];
  return conditions.some((one) => one['type'] === 'Ready' && one['status'] === 'True');
}

/** Tells each change of a Pod that stays once. */
function changed(
  pods: readonly Pod[],
  { kept, isForgiven }: { kept: Kept; isForgiven: (node: string) => boolean },
): readonly string[] {
  const now = pods.filter((pod) => isLabelled(pod, WATCH_LABELS.stays));
  const found: string[] = [];
  for (const [name, { node, identity }] of kept) {
    const pod = now.find(({ metadata }) => metadata.name === name);
    const seen = pod === undefined ? 'gone' : identityOf(pod);
    if (seen === identity) continue;
    found.push(`Pod ${name} on ${node} was ${identity} and is ${seen}`);
    kept.delete(name);
  }
  for (const pod of now.filter(isReady)) {
    const spec = isObject(pod['spec']) ? pod['spec'] : {};
    const node = String(spec['nodeName']);
    if (!isForgiven(node)) kept.set(pod.metadata.name, { node, identity: identityOf(pod) });
  }
  return found;
}

function isLabelled(pod: Pod, label: string): boolean {
  return pod.metadata.labels?.[label] === 'true';
}

/** Tells each name whose address is another than before. */
function movedNames(pods: readonly Pod[], ofNames: Map<string, string>): readonly string[] {
  const ready = pods.filter((pod) => isReady(pod) && isLabelled(pod, WATCH_LABELS.keepsAddress));
  return ready.flatMap((pod) => {
    const [name, ip] = [pod.metadata.name, addressOf(pod)];
    const before = ofNames.get(name) ?? ip;
    ofNames.set(name, ip);
    return before === ip ? [] : [`Pod ${name} keeps its address, had ${before} and has ${ip}`];
  });
}

function identityOf(pod: Pod): string {
  const status = isObject(pod['status']) ? pod['status'] : {};
  const containers = Array.isArray(status['containerStatuses']) ? status['containerStatuses'].filter(isObject) : [];
  const restarts = containers.map((one) => `${String(one['containerID']).slice(-12)} restarts ${one['restartCount']}`);
  return `${addressOf(pod)} ${restarts}`;
}

/** After a reboot a Pod's status tells of its old address until kubelet has looked: only what lasts is told. */
function lastingDoubles(pods: readonly Pod[], since: Map<string, number>): readonly string[] {
  const now = performance.now();
  const found = pods.flatMap((pod, index) =>
    pods
      .slice(index + 1)
      .filter((other) => addressOf(other) === addressOf(pod))
      .map((other) => `Pods ${keyOf(pod)} and ${keyOf(other)} both have ${addressOf(pod)}`),
  );
  for (const line of since.keys()) if (!found.includes(line)) since.delete(line);
  for (const line of found) if (!since.has(line)) since.set(line, now);
  return found.filter((line) => now - (since.get(line) ?? now) > STALE_MS);
}

function tail(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
