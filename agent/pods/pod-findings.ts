import type { KubeClient } from '../../kube/kube-client.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Lease } from '../journal/lease.ts';
import type { PodFinding, ShownPods } from '../pool/brief.ts';
import type { PodIdentity } from '../pool/lease-static.ts';
import { fetchPod } from './fetch-pod.ts';
import { type KubePod, kubePodOf } from './kube-pod.ts';
import type { PodView } from './pod-view.ts';

/** Looks at the Pods of leases that end: whether their status has an address. */
export type PodFindings = {
  /** What the watch of the node's Pods shows of the Pod of a lease. */
  of(lease: Lease): PodFinding;
  /** Asks the API server for the Pod, soon: the watch was silent for too long. Never throws. */
  ask(lease: Lease): void;
};

/** Without a cluster nothing is known of Pods. */
export const NO_POD_FINDINGS: PodFindings = { of: () => 'unknown', ask: () => {} };

/** Dependencies of looking at Pods. */
type PodFindingsDeps = {
  readonly background: Background;
  readonly kube: Pick<KubeClient, 'get'>;
  readonly view: Pick<PodView, 'find' | 'isFresh' | 'silenceMs'>;
  readonly clock: Clock;
  /** Called with the uid of a Pod that has no address, by the answer of the API server. */
  readonly proven: (podUid: string) => void;
};

/** A watch that was heard within this time shows what the API server has. Milliseconds. */
const HEARD_MS = 5_000;
/** Between two questions, milliseconds: on a node all of whose sandboxes fail, many Pods are to be asked for. */
const ASK_EVERY_MS = 1_000;
/** Most Pods to ask for; those beyond rest as others do. */
const MAX_ASKED = 64;

/** Looks at Pods in the cache of the node's Pods, and asks the API server one by one, until `close`. */
export function openPodFindings({
  background,
  kube,
  view,
  clock,
  proven,
}: PodFindingsDeps): PodFindings & { close(): void } {
  const closing = new AbortController();
  const { signal } = closing;
  const asked = new Map<string, PodIdentity>();
  const askAll = async (): Promise<void> => {
    for (const [uid, pod] of asked) {
      const answer = await fetchPod(kube, clock, pod, signal);
      if (signal.aborted) return;
      if ('pod' in answer && hasNoAddress(kubePodOf(answer.pod), uid)) proven(uid);
      await clock.sleep(ASK_EVERY_MS, signal).catch(() => {});
      asked.delete(uid);
    }
  };
  return {
    of: ({ podNamespace, podName, podUid, addresses }) => {
      const pod = view.isFresh() ? view.find(podNamespace, podName) : undefined;
      if (pod === undefined || !isLiving(pod, podUid)) return 'unknown';
      if (addresses.some(({ ip }) => pod.ips.includes(ip))) return 'unknown';
      if (!hasNoAddress(pod, podUid)) return 'another';
      return view.silenceMs() < HEARD_MS ? 'none' : 'none-yet';
    },
    ask: ({ podNamespace: namespace, podName: name, podUid: uid }) => {
      if (asked.has(uid) || asked.size >= MAX_ASKED) return;
      asked.set(uid, { namespace, name, uid });
      if (asked.size === 1) background('asking for Pods whose sandboxes may have failed', askAll());
    },
    close: () => closing.abort('closed'),
  };
}

/** Collects what the watch shows of all Pods of the node. */
export function shownPodsOf(pods: Iterable<KubePod>): ShownPods {
  const all = [...pods];
  return {
    ips: new Set(all.flatMap(({ ips }) => ips)),
    uids: new Set(all.filter(({ isAlive }) => isAlive).map(({ uid }) => uid)),
  };
}

function isLiving(pod: KubePod, uid: string): boolean {
  return uid !== '' && pod.uid === uid && pod.isAlive;
}

/** A Pod that runs had an address, whatever its status has now: kubelet takes it out when the sandbox dies. */
function hasNoAddress(pod: KubePod | undefined, uid: string): boolean {
  return pod !== undefined && isLiving(pod, uid) && pod.ips.length === 0 && !pod.isRunning;
}
