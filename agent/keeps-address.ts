import { CNI_CODE } from './api/cni-code.ts';
import { CniFailureError } from './cni-failure.ts';
import { decideKeepsAddress } from './decide-keeps-address.ts';
import { findMark, type PodIdentity } from './pool/lease-kept.ts';
import type { UseCaseDeps } from './ports.ts';

/** The watch brings a Pod before kubelet sends its ADD, as a rule; a question costs the API server more. */
const VIEW_WAIT_MS = 500;

/**
 * Tells whether a Pod gets the address that is kept for it, and no other. Waits for the API server only where kept
 * addresses are enabled, and there only for a Pod that is not known here.
 * @param untilMs How long it may wait, since boot.
 * @throws CniFailureError 11 when nobody can say: an address of the pool might be the wrong one for ever.
 */
export async function keepsAddress(
  { clock, state }: Pick<UseCaseDeps, 'clock' | 'state'>,
  pod: PodIdentity,
  untilMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  // Not of Kubernetes: it has no name that anything could be kept for.
  if (pod.name === '') return false;
  const decide = (): boolean | undefined =>
    decideKeepsAddress({
      uid: pod.uid,
      markUids: findMark(state.pool.state, pod)?.uids,
      word: state.podWord.known(pod),
      isEnabled: state.supply?.isStaticIpEnabled === true,
    });
  const viewUntilMs = Math.min(untilMs, clock.bootMs() + VIEW_WAIT_MS);
  for (;;) {
    const decided = decide();
    if (decided !== undefined) return decided;
    const nowMs = clock.bootMs();
    if (nowMs >= viewUntilMs || signal.aborted) break;
    // Notified when a Pod came, or supply did.
    await state.demandChanged.wait(viewUntilMs - nowMs, signal);
  }
  const answer = await state.podWord.ask(pod, signal);
  if (typeof answer === 'boolean') return answer;
  const decided = decide();
  if (decided !== undefined) return decided;
  throw new CniFailureError(
    CNI_CODE.tryAgainLater,
    `nobody can say yet whether ${pod.namespace}/${pod.name} keeps its address`,
    answer.why,
  );
}
