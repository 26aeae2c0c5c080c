import { isStaticPod } from '../../crd/pod-wishes.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-kept.ts';
import { askForPod, findKnownPod, type UnsaidWord } from './ask-pod.ts';
import type { PodView } from './pod-view.ts';

/** Looks up whether a Pod has a static IP, so that it gets that address and no other. */
export type PodWord = {
  /** From the cache; undefined when the Pod is not known. For a Pod without uid the name is enough. */
  known(pod: PodIdentity): boolean | undefined;
  /** From the API server, within a few seconds. Never rejects. */
  ask(pod: PodIdentity, signal: AbortSignal): Promise<boolean | UnsaidWord>;
};

/** Without a cluster the supply alone decides: a Pod without a claim mark has no static IP. */
export const NO_POD_WORD: PodWord = { known: () => undefined, ask: async () => false };

/** Looks Pods up in the cache of the node's Pods, and in the API server. */
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
