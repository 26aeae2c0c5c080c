import { isStaticPod } from '../../crd/pod-wishes.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-kept.ts';
import { askForPod, findKnownPod, type UnsaidWord } from './ask-pod.ts';
import type { PodView } from './pod-view.ts';

/** Says of a Pod whether it gets the address that is kept for its name, and no other. */
export type PodWord = {
  /** From memory; undefined when the Pod is not known. A Pod without uid is known by its name. */
  known(pod: PodIdentity): boolean | undefined;
  /** Asks the API server, for a few seconds. Never rejects. */
  ask(pod: PodIdentity, signal: AbortSignal): Promise<boolean | UnsaidWord>;
};

/** Where there is no cluster the supply says it all: a Pod without a mark has no kept address. */
export const NO_POD_WORD: PodWord = { known: () => undefined, ask: async () => false };

/** Takes the word of the node's Pods as they are known here, and of the API server. */
export function openPodWord(kube: Pick<KubeClient, 'get'>, view: Pick<PodView, 'find'>, clock: Clock): PodWord {
  return {
    known: (pod) => {
      const record = findKnownPod(view, pod);
      return record === undefined ? undefined : record.keepsAddress === true;
    },
    ask: async (pod, signal) => {
      const answer = await askForPod(kube, clock, pod, signal);
      return 'why' in answer ? answer : isStaticPod(answer.pod.metadata.annotations);
    },
  };
}
