import type { KubeClient } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-kept.ts';
import { type PodRecord, podRecordOf, podUidOf } from './pod-record.ts';
import type { PodView } from './pod-view.ts';
import type { UnsaidWord } from './pod-word.ts';

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

/** An ADD has not much longer; kubelet tries again. */
const ASK_MS = 4_000;

/** Takes the word of the node's Pods as they are known here, and of the API server. */
export function openNetworkWord(kube: Pick<KubeClient, 'get'>, view: Pick<PodView, 'find'>, clock: Clock): NetworkWord {
  return {
    known: ({ namespace, name, uid }) => {
      const record = view.find(namespace, name);
      return record === undefined || (uid !== '' && record.uid !== uid) ? undefined : wishOf(record);
    },
    ask: async ({ namespace, name, uid }, signal) => {
      const [answered, late] = [new AbortController(), new AbortController()];
      clock.sleep(ASK_MS, answered.signal).then(
        () => late.abort(`no answer in ${ASK_MS / 1000} s`),
        () => {},
      );
      try {
        const pod = await kube.get(PODS, { namespace, name }, AbortSignal.any([signal, late.signal]));
        if (pod === undefined) return { why: 'the API server knows no such Pod' };
        if (uid !== '' && podUidOf(pod.metadata) !== uid)
          return { why: 'the API server knows another Pod of its name' };
        return wishOf(podRecordOf(pod));
      } catch (error) {
        const why = late.signal.aborted ? String(late.signal.reason) : String(error);
        return { why: `the API server was asked for it: ${why}` };
      } finally {
        answered.abort('answered');
      }
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
