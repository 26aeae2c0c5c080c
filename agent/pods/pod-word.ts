import { isStaticPod } from '../../crd/pod-wishes.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-kept.ts';
import { podUidOf } from './pod-record.ts';
import type { PodView } from './pod-view.ts';

/** Says of a Pod whether it gets the address that is kept for its name, and no other. */
export type PodWord = {
  /** From memory; undefined when the Pod is not known. A Pod without uid is known by its name. */
  known(pod: PodIdentity): boolean | undefined;
  /** Asks the API server, for a few seconds. Never rejects. */
  ask(pod: PodIdentity, signal: AbortSignal): Promise<boolean | UnsaidWord>;
};

/** Nobody can say, and why. */
export type UnsaidWord = { readonly why: string };

/** Where there is no cluster the supply says it all: a Pod without a mark has no kept address. */
export const NO_POD_WORD: PodWord = { known: () => undefined, ask: async () => false };

/** An ADD has not much longer; kubelet tries again. */
const ASK_MS = 4_000;

/** Takes the word of the node's Pods as they are known here, and of the API server. */
export function openPodWord(kube: Pick<KubeClient, 'get'>, view: Pick<PodView, 'find'>, clock: Clock): PodWord {
  return {
    known: ({ namespace, name, uid }) => {
      const record = view.find(namespace, name);
      if (record === undefined || (uid !== '' && record.uid !== uid)) return undefined;
      return record.keepsAddress === true;
    },
    ask: async ({ namespace, name, uid }, signal) => {
      const answered = new AbortController();
      const late = new AbortController();
      clock.sleep(ASK_MS, answered.signal).then(
        () => late.abort(`no answer in ${ASK_MS / 1000} s`),
        () => {},
      );
      try {
        const pod = await kube.get(PODS, { namespace, name }, AbortSignal.any([signal, late.signal]));
        if (pod === undefined) return { why: 'the API server knows no such Pod' };
        if (uid !== '' && podUidOf(pod.metadata) !== uid)
          return { why: 'the API server knows another Pod of its name' };
        return isStaticPod(pod.metadata.annotations);
      } catch (error) {
        const told = late.signal.aborted
          ? String(late.signal.reason)
          : error instanceof Error
            ? error.message
            : String(error);
        return { why: `the API server was asked for it: ${told}` };
      } finally {
        answered.abort('answered');
      }
    },
  };
}
