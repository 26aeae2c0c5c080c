import { isStaticPod } from '../../crd/pod-network-request.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-static.ts';
import { fetchPod, findCachedPod, type LookupFailure } from './fetch-pod.ts';
import type { PodView } from './pod-view.ts';
import type { RecordedPods } from './recorded-pods.ts';

/** Looks up whether a Pod has a static IP, so that it gets that address and no other. */
export type StaticIpLookup = {
  /** From the cache; undefined when the Pod is not known. For a Pod without uid the name is enough. */
  cached(pod: PodIdentity): boolean | undefined;
  /** From the API server, within a few seconds. Never rejects. */
  fetch(pod: PodIdentity, signal: AbortSignal): Promise<boolean | LookupFailure>;
};

/** Without a cluster the supply alone decides: a Pod without a claim mark has no static IP. */
export const NO_STATIC_IP_LOOKUP: StaticIpLookup = { cached: () => undefined, fetch: async () => false };

/** Looks Pods up in the cache of the node's Pods, in the API server, and where that does not answer in the journal. */
export function openStaticIpLookup(
  kube: Pick<KubeClient, 'get'>,
  view: Pick<PodView, 'find'>,
  recorded: Pick<RecordedPods, 'findUnanswered'>,
  clock: Clock,
): StaticIpLookup {
  return {
    cached: (pod) => {
      const found = findCachedPod(view, pod);
      return found === undefined ? undefined : found.isStatic === true;
    },
    fetch: async (pod, signal) => {
      const answer = await fetchPod(kube, clock, pod, signal);
      if ('pod' in answer) return isStaticPod(answer.pod.metadata.annotations);
      const found = recorded.findUnanswered(pod, answer);
      return found === undefined ? answer : found.isStatic === true;
    },
  };
}
