import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-static.ts';
import { fetchPod, findCachedPod, type LookupFailure } from './fetch-pod.ts';
import { type PodRecord, podRecordOf } from './pod-record.ts';
import type { PodView } from './pod-view.ts';

/** How a Pod is connected to the VPC. */
export type NetworkMode = {
  /** Undefined: as its network configuration says. */
  readonly isDirect: boolean | undefined;
  /** A whole ENI for it must have its own claim. */
  readonly needsClaim: boolean;
};

/** Looks up how a Pod is connected to the VPC. */
export type NetworkModeLookup = {
  /** From the cache; undefined when the Pod is not known. */
  cached(pod: PodIdentity): NetworkMode | undefined;
  /** From the API server, within a few seconds. Never rejects. */
  fetch(pod: PodIdentity, signal: AbortSignal): Promise<NetworkMode | LookupFailure>;
};

const AS_CONFIGURED: NetworkMode = { isDirect: undefined, needsClaim: false };

/** Without a cluster the network configuration alone decides. */
export const NO_NETWORK_MODE_LOOKUP: NetworkModeLookup = {
  cached: () => AS_CONFIGURED,
  fetch: async () => AS_CONFIGURED,
};

/** Looks Pods up in the cache of the node's Pods, and in the API server. */
export function openNetworkModeLookup(
  kube: Pick<KubeClient, 'get'>,
  view: Pick<PodView, 'find'>,
  clock: Clock,
): NetworkModeLookup {
  return {
    cached: (pod) => {
      const record = findCachedPod(view, pod);
      return record === undefined ? undefined : networkModeOf(record);
    },
    fetch: async (pod, signal) => {
      const answer = await fetchPod(kube, clock, pod, signal);
      return 'why' in answer ? answer : networkModeOf(podRecordOf(answer.pod));
    },
  };
}

/**
 * Returns the network mode of a Pod. A Pod that requests another network only, and has an ADD here all the same, gets
 * what the configuration says.
 */
function networkModeOf(record: PodRecord | undefined): NetworkMode {
  if (record === undefined) return AS_CONFIGURED;
  return {
    isDirect: record.direct === undefined ? undefined : true,
    // Where the configuration selects a whole ENI, one that was not prepared would have the node's security groups.
    needsClaim: record.direct === 'own' || record.isStatic === true || record.requestsGroups === true,
  };
}
