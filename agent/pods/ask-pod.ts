import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-kept.ts';
import { type PodRecord, podUidOf } from './pod-record.ts';
import type { PodView } from './pod-view.ts';

/** A lookup that gave no answer, and why. */
export type UnsaidWord = { readonly why: string };

/** The result of reading a Pod from the API server. */
type PodAnswer = { readonly pod: KubeObject } | UnsaidWord;

/** Timeout of the request: an ADD has not much time left, and kubelet tries again. */
const ASK_MS = 4_000;

/** Finds a Pod in the cache; undefined when it is not known. Without a uid the name is enough. */
export function findKnownPod(
  view: Pick<PodView, 'find'>,
  { namespace, name, uid }: PodIdentity,
): PodRecord | undefined {
  const record = view.find(namespace, name);
  return record === undefined || (uid !== '' && record.uid !== uid) ? undefined : record;
}

/**
 * Reads a Pod from the API server, for a few seconds at most; one of that name with another uid is not accepted. Never
 * rejects.
 */
export async function askForPod(
  kube: Pick<KubeClient, 'get'>,
  clock: Clock,
  { namespace, name, uid }: PodIdentity,
  signal: AbortSignal,
): Promise<PodAnswer> {
  const answered = new AbortController();
  const late = new AbortController();
  clock.sleep(ASK_MS, answered.signal).then(
    () => late.abort(`no answer in ${ASK_MS / 1000} s`),
    () => {},
  );
  try {
    const pod = await kube.get(PODS, { namespace, name }, AbortSignal.any([signal, late.signal]));
    if (pod === undefined) return { why: 'the API server knows no such Pod' };
    const isAnother = uid !== '' && podUidOf(pod.metadata) !== uid;
    return isAnother ? { why: 'the API server knows another Pod of its name' } : { pod };
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error);
    return { why: `the API server was asked for it: ${late.signal.aborted ? String(late.signal.reason) : failure}` };
  } finally {
    answered.abort('answered');
  }
}
