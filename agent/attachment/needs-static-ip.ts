import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import { ANY_UID } from '../journal/supply.ts';
import { findClaimUids, type PodIdentity } from '../pool/lease-static.ts';
import type { UseCaseDeps } from '../state/ports.ts';

/**
 * How long to wait for the watch, which normally delivers a Pod before kubelet sends its ADD; a request would cost the
 * API server more.
 */
const VIEW_WAIT_MS = 500;

/**
 * Tells whether a Pod gets its static IP, and no other address. Asks the API server only where static IPs are enabled,
 * and only for a Pod that is not known.
 * @param untilMs End of the wait, milliseconds since boot.
 * @throws CniFailureError 11 when it cannot be determined: an address of the pool might be the wrong one for ever.
 */
export async function needsStaticIp(
  { clock, state }: Pick<UseCaseDeps, 'clock' | 'state'>,
  pod: PodIdentity,
  untilMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  // Not a Pod of Kubernetes: without a name it can have no static IP.
  if (pod.name === '') return false;
  const decide = (): boolean | undefined =>
    decideStaticIp({
      uid: pod.uid,
      markUids: findClaimUids(state.pool.state, pod)?.uids,
      isRequested: state.staticIpLookup.cached(pod),
      isEnabled: state.supply?.isStaticIpEnabled === true,
    });
  const viewUntilMs = Math.min(untilMs, clock.bootMs() + VIEW_WAIT_MS);
  for (;;) {
    const decided = decide();
    if (decided !== undefined) return decided;
    const nowMs = clock.bootMs();
    if (nowMs >= viewUntilMs || signal.aborted) break;
    // Notified when a Pod or a supply came.
    await state.demandChanged.wait(viewUntilMs - nowMs, signal);
  }
  const answer = await state.staticIpLookup.fetch(pod, signal);
  if (typeof answer === 'boolean') return answer;
  const decided = decide();
  if (decided !== undefined) return decided;
  throw new CniFailureError(
    CNI_CODE.tryAgainLater,
    `it is not known yet whether ${pod.namespace}/${pod.name} keeps its address`,
    answer.why,
  );
}

/** What is known of a Pod that needs an address. */
type StaticIpFacts = {
  /** '' when the runtime gives none. */
  readonly uid: string;
  /** The uids in the claim marks of its name in the supply; undefined: there is no mark of its name. */
  readonly markUids: ReadonlySet<string> | undefined;
  /** Whether the Pod itself requests a static IP; undefined: the Pod is not known. */
  readonly isRequested: boolean | undefined;
  /** Pods of the node may have static IPs. */
  readonly isEnabled: boolean;
};

/**
 * Decides whether a Pod gets its static IP, and no other address; undefined when it cannot be determined. A claim mark
 * with the Pod's own uid was written by ipamd; it is valid without asking the API server. Otherwise the Pod decides;
 * otherwise a mark of its name, which a Pod without a static IP does not have. On a node without static IPs no question
 * is needed.
 */
function decideStaticIp({ uid, markUids, isRequested, isEnabled }: StaticIpFacts): boolean | undefined {
  if (markUids?.has(ANY_UID) === true) return true;
  if (uid !== '' && markUids?.has(uid) === true) return true;
  if (isRequested !== undefined) return isRequested;
  if (markUids !== undefined) return true;
  return isEnabled ? undefined : false;
}
