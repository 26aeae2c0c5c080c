import { openInformer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { type PodRecord, podRecordOf } from './pod-record.ts';

/** What following the node's Pods needs. */
export type PodViewOptions = {
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
};

/** The Pods of this node, as the API server has them. */
export type PodView = {
  /** Nothing before the first list; later what was last known. */
  pods(): Iterable<PodRecord>;
  /** What is known of the Pod of a name; undefined too when it is in another network. */
  find(namespace: string, name: string): PodRecord | undefined;
  /** True while the API server is heard of: what is here may be relied on. */
  isFresh(): boolean;
  /** Calls whenever a Pod came, went or changed. Returns the way to stop. */
  subscribe(listener: () => void): () => void;
  close(): void;
};

/** Three of a watch's bookmarks: a server that is silent for longer is not there. */
const FRESH_MS = 180_000;
/** Pods of one node; a page is held in memory whole. */
const PAGE_SIZE = 50;

/** Follows the Pods of `nodeName` until `close`; keeps of each only what is needed. */
export function openPodView({ nodeName, ...options }: PodViewOptions): PodView {
  const closing = new AbortController();
  const informer = openInformer({
    ...options,
    type: PODS,
    query: { fieldSelector: `spec.nodeName=${nodeName}` },
    pageSize: PAGE_SIZE,
    decode: podRecordOf,
  });
  void informer.start(closing.signal);
  return {
    pods: () => informer.values(),
    find: (namespace, name) => informer.get(`${namespace}/${name}`),
    isFresh: () => informer.isSynced && options.clock.monotonicMs() - informer.lastContactMs < FRESH_MS,
    subscribe: (listener) => informer.subscribe(listener),
    close: () => closing.abort('closed'),
  };
}
