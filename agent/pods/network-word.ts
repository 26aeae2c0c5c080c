import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-kept.ts';
import { askForPod, findKnownPod, type UnsaidWord } from './ask-pod.ts';
import { type PodRecord, podRecordOf } from './pod-record.ts';
import type { PodView } from './pod-view.ts';

/** How a Pod is joined to the VPC. */
export type NetworkWish = {
  /** Undefined: as its network configuration says. */
  readonly isDirect: boolean | undefined;
  /** A whole ENI has to be one that is kept or prepared for it. */
  readonly isOwn: boolean;
};

/** Says of a Pod how it is joined to the VPC. */
export type NetworkWord = {
  /** From memory; undefined when the Pod is not known. */
  known(pod: PodIdentity): NetworkWish | undefined;
  /** Asks the API server, for a few seconds. Never rejects. */
  ask(pod: PodIdentity, signal: AbortSignal): Promise<NetworkWish | UnsaidWord>;
};

const AS_CONFIGURED: NetworkWish = { isDirect: undefined, isOwn: false };

/** Where there is no cluster the network configuration says it all. */
export const NO_NETWORK_WORD: NetworkWord = { known: () => AS_CONFIGURED, ask: async () => AS_CONFIGURED };

/** Takes the word of the node's Pods as they are known here, and of the API server. */
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

/** One that asks for another network is asked for here all the same: then the configuration counts. */
function wishOf(record: PodRecord | undefined): NetworkWish {
  if (record === undefined) return AS_CONFIGURED;
  return {
    isDirect: record.direct === undefined ? undefined : true,
    // Where the configuration makes the ENI a whole one, an unprepared one would have the node's security groups.
    isOwn: record.direct === 'own' || record.keepsAddress === true || record.asksForGroups === true,
  };
}
