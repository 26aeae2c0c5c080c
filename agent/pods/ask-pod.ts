import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PodIdentity } from '../pool/lease-kept.ts';
import { type PodRecord, podUidOf } from './pod-record.ts';
import type { PodView } from './pod-view.ts';

/** Nobody can say, and why. */
export type UnsaidWord = { readonly why: string };

/** What the API server says of a Pod. */
export type PodAnswer = { readonly pod: KubeObject } | UnsaidWord;

/** An ADD has not much longer; kubelet tries again. */
const ASK_MS = 4_000;

/** Finds a Pod in memory; undefined when it is not known. One without uid is known by its name. */
export function findKnownPod(
  view: Pick<PodView, 'find'>,
  { namespace, name, uid }: PodIdentity,
): PodRecord | undefined {
  const record = view.find(namespace, name);
  return record === undefined || (uid !== '' && record.uid !== uid) ? undefined : record;
}

/** Asks the API server for a Pod, for a few seconds, and believes no other of its name. Never rejects. */
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
