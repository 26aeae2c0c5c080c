import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { RecordedPod } from '../journal/journal-content.ts';
import type { PodIdentity } from '../pool/lease-static.ts';
import { fetchPod, findCachedPod, type LookupFailure } from './fetch-pod.ts';
import { kubePodOf } from './kube-pod.ts';
import type { PodView } from './pod-view.ts';
import type { RecordedPods } from './recorded-pods.ts';

/** How a Pod is connected to the VPC. */
export type NetworkMode = {
  /** Undefined: as its network configuration and the default of the node say. */
  readonly network: 'route-eni' | 'direct-eni' | 'bridge' | undefined;
  /** A whole ENI for it must have its own claim. */
  readonly needsClaim: boolean;
  /** Why no network can be chosen by its annotation: its ADD fails. */
  readonly fault?: string;
  /** The name in its annotation, when it is a valid one and none of our networks. */
  readonly otherNetwork?: string;
};

/** Looks up how a Pod is connected to the VPC. */
export type NetworkModeLookup = {
  /** From the cache; undefined when the Pod is not known. */
  cached(pod: PodIdentity): NetworkMode | undefined;
  /** From the API server, within a few seconds. Never rejects. */
  fetch(pod: PodIdentity, signal: AbortSignal): Promise<NetworkMode | LookupFailure>;
};

const AS_CONFIGURED: NetworkMode = { network: undefined, needsClaim: false };

/** Without a cluster the network configuration alone decides. */
export const NO_NETWORK_MODE_LOOKUP: NetworkModeLookup = {
  cached: () => AS_CONFIGURED,
  fetch: async () => AS_CONFIGURED,
};

/** Looks Pods up in the cache of the node's Pods, in the API server, and where that does not answer in the journal. */
export function openNetworkModeLookup(
  kube: Pick<KubeClient, 'get'>,
  view: Pick<PodView, 'find'>,
  recorded: Pick<RecordedPods, 'findUnanswered'>,
  clock: Clock,
): NetworkModeLookup {
  return {
    cached: (pod) => {
      const found = findCachedPod(view, pod);
      return found === undefined ? undefined : networkModeOf(found);
    },
    fetch: async (pod, signal) => {
      const answer = await fetchPod(kube, clock, pod, signal);
      if ('pod' in answer) return networkModeOf(kubePodOf(answer.pod));
      const found = recorded.findUnanswered(pod, answer);
      return found === undefined ? answer : networkModeOf(found);
    },
  };
}

function networkModeOf(pod: RecordedPod | undefined): NetworkMode {
  if (pod === undefined) return AS_CONFIGURED;
  return {
    network: pod.direct === undefined ? pod.network : 'direct-eni',
    // Where the configuration selects a whole ENI, one that was not prepared would have the node's security groups.
    needsClaim: pod.direct === 'own' || pod.isStatic === true || pod.requestsGroups === true,
    ...(pod.networkFault === undefined ? {} : { fault: pod.networkFault }),
    ...(pod.otherNetwork === undefined ? {} : { otherNetwork: pod.otherNetwork }),
  };
}
