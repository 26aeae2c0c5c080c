import { openInformer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { type KubePod, kubePodOf } from './kube-pod.ts';

/** Dependencies of following the node's Pods. */
type PodViewOptions = {
  readonly background: Background;
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
};

/** The Pods of this node, from the API server. */
export type PodView = {
  /** Empty before the first list; later what was last known. */
  pods(): Iterable<KubePod>;
  /** The Pod of a name as last known; undefined too when it is in another network. */
  find(namespace: string, name: string): KubePod | undefined;
  /** True while the API server answers: the content is up to date. */
  isFresh(): boolean;
  /** Milliseconds since the last answer or event of the API server; infinite when there was none. */
  silenceMs(): number;
  /** Calls the listener whenever a Pod is added, deleted or changed. Returns the function that unsubscribes. */
  subscribe(listener: () => void): () => void;
  close(): void;
};

/**
 * Maximum age of the last contact: three of a watch's bookmarks. A server that is silent for longer is not reachable.
 */
const FRESH_MS = 180_000;
/** Number of Pods of one node in a page; a whole page is held in memory. */
const PAGE_SIZE = 50;

/** Follows the Pods of `nodeName` until `close`; caches only what is needed of each. */
export function openPodView({ background, nodeName, ...options }: PodViewOptions): PodView {
  const closing = new AbortController();
  const informer = openInformer({
    ...options,
    type: PODS,
    query: { fieldSelector: `spec.nodeName=${nodeName}` },
    pageSize: PAGE_SIZE,
    decode: kubePodOf,
  });
  const silenceMs = (): number => options.clock.monotonicMs() - informer.lastContactMs;
  background('following the Pods of the node', informer.start(closing.signal));
  return {
    pods: () => informer.values(),
    find: (namespace, name) => informer.get(`${namespace}/${name}`),
    isFresh: () => informer.isSynced && silenceMs() < FRESH_MS,
    silenceMs,
    subscribe: (listener) => informer.subscribe(listener),
    close: () => closing.abort('closed'),
  };
}
