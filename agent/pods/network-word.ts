import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-kept.ts';
import { askForPod, findKnownPod, type UnsaidWord } from './ask-pod.ts';
import { type PodRecord, podRecordOf } from './pod-record.ts';
import type { PodView } from './pod-view.ts';

/** How a Pod is connected to the VPC. */
export type NetworkWish = {
  /** Undefined: as its network configuration says. */
  readonly isDirect: boolean | undefined;
  /** A whole ENI for it must have its own claim. */
  readonly isOwn: boolean;
};

/** Looks up how a Pod is connected to the VPC. */
export type NetworkWord = {
  /** From the cache; undefined when the Pod is not known. */
  known(pod: PodIdentity): NetworkWish | undefined;
  /** From the API server, within a few seconds. Never rejects. */
  ask(pod: PodIdentity, signal: AbortSignal): Promise<NetworkWish | UnsaidWord>;
};

const AS_CONFIGURED: NetworkWish = { isDirect: undefined, isOwn: false };

/** Without a cluster the network configuration alone decides. */
export const NO_NETWORK_WORD: NetworkWord = { known: () => AS_CONFIGURED, ask: async () => AS_CONFIGURED };

/** Looks Pods up in the cache of the node's Pods, and in the API server. */
export function openNetworkWord(kube: Pick<KubeClient, 'get'>, view: Pick<PodView, 'find'>, clock: Clock): NetworkWord {
  return {
    known: (pod) => {
      const record = findKnownPod(view, pod);
      return record === undefined ? undefined : wishOf(record);
    },
    ask: async (pod, signal) => {
      const answer = await askForPod(kube, clock, pod, signal);
      return 'why' in answer ? answer : wishOf(podRecordOf(answer.pod));
    },
  };
}

/**
 * Returns the network mode of a Pod. A Pod that requests another network only, and has an ADD here all the same, gets
 * what the configuration says.
 */
function wishOf(record: PodRecord | undefined): NetworkWish {
  if (record === undefined) return AS_CONFIGURED;
  return {
    isDirect: record.direct === undefined ? undefined : true,
    // Where the configuration selects a whole ENI, one that was not prepared would have the node's security groups.
    isOwn: record.direct === 'own' || record.keepsAddress === true || record.asksForGroups === true,
  };
}
