import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { PodIdentity } from '../pool/lease-static.ts';
import { type KubePod, podUidOf } from './kube-pod.ts';
import type { PodView } from './pod-view.ts';

/** A lookup that gave no answer, and why. `isAbsent`: the API server answered that it has no such Pod. */
export type LookupFailure = { readonly why: string; readonly isAbsent?: true };

/** The result of reading a Pod from the API server. */
type PodAnswer = { readonly pod: KubeObject } | LookupFailure;

/** Timeout of the request: an ADD has not much time left, and kubelet tries again. */
const FETCH_MS = 4_000;

/** Finds a Pod in the cache; undefined when it is not known. Without a uid the name is enough. */
export function findCachedPod(view: Pick<PodView, 'find'>, { namespace, name, uid }: PodIdentity): KubePod | undefined {
  const pod = view.find(namespace, name);
  return pod === undefined || (uid !== '' && pod.uid !== uid) ? undefined : pod;
}

/**
 * Reads a Pod from the API server, for a few seconds at most; one of that name with another uid is not accepted. Never
 * rejects.
 */
export async function fetchPod(
  kube: Pick<KubeClient, 'get'>,
  clock: Clock,
  { namespace, name, uid }: PodIdentity,
  signal: AbortSignal,
): Promise<PodAnswer> {
  const answered = new AbortController();
  const timeout = new AbortController();
  clock.sleep(FETCH_MS, answered.signal).then(
    () => timeout.abort(`no answer in ${FETCH_MS / 1000} s`),
    () => {},
  );
  try {
    const pod = await kube.get(PODS, { namespace, name }, AbortSignal.any([signal, timeout.signal]));
    if (pod === undefined) return { why: 'the API server knows no such Pod', isAbsent: true };
    const isAnother = uid !== '' && podUidOf(pod.metadata) !== uid;
    return isAnother ? { why: 'the API server knows another Pod of its name', isAbsent: true } : { pod };
  } catch (error) {
    const failure = messageOf(error);
    return {
      why: `the API server was asked for it: ${timeout.signal.aborted ? String(timeout.signal.reason) : failure}`,
    };
  } finally {
    answered.abort('answered');
  }
}
