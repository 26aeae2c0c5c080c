import { CNI_CODE } from '../api/cni-code.ts';
import type { TimedAttachCommand } from '../attach-command.ts';
import { CniFailureError } from '../cni-failure.ts';
import { leaseKey } from '../journal/lease.ts';
import type { NetworkMode } from '../pods/network-mode-lookup.ts';
import type { UseCaseDeps } from '../ports.ts';

/** The command of an ADD, with the network that the Pod really gets. */
export type ChosenNetwork = {
  readonly command: TimedAttachCommand;
  /** Its whole ENI must have a claim of this Pod: its address is static, or ipamd prepared the ENI for it. */
  readonly needsClaim: boolean;
};

/**
 * How long to wait for the watch, which normally delivers a Pod before kubelet sends its ADD; a request would cost the
 * API server more.
 */
const VIEW_WAIT_MS = 500;

/**
 * Decides whether a Pod shares an ENI or gets a whole one: its annotation takes precedence over the network
 * configuration that led to this ADD. Asks the API server only where whole ENIs are served or configured, and only for
 * an unknown Pod.
 * @throws CniFailureError 11 when it cannot be determined: on the wrong ENI the Pod would have the wrong security
 * groups.
 */
export async function chooseNetwork(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  signal: AbortSignal,
): Promise<ChosenNetwork> {
  const { state } = deps;
  const existing = state.leases.get(leaseKey(command.containerId, command.ifName));
  // A repeated ADD: the attachment stays what it is.
  if (existing?.plugin === 'direct-eni' && command.plugin === 'route-eni')
    return withMode(command, { isDirect: true, needsClaim: false });
  // Not a Pod of Kubernetes: without a name it can have no claim.
  if (command.plugin === 'ipam' || command.podName === '') return { command, needsClaim: false };
  const pod = { namespace: command.podNamespace, name: command.podName, uid: command.podUid };
  const known = state.networkModeLookup.cached(pod);
  if (known !== undefined) return withMode(command, known);
  if (command.plugin === 'route-eni' && state.supply?.direct === undefined) return { command, needsClaim: false };
  await state.demandChanged.wait(VIEW_WAIT_MS, signal);
  const answer = state.networkModeLookup.cached(pod) ?? (await state.networkModeLookup.fetch(pod, signal));
  if (!('why' in answer)) return withMode(command, answer);
  throw new CniFailureError(
    CNI_CODE.tryAgainLater,
    `it is not known yet whether ${pod.namespace}/${pod.name} needs an ENI of its own`,
    answer.why,
  );
}

function withMode(command: TimedAttachCommand, { isDirect, needsClaim }: NetworkMode): ChosenNetwork {
  return { command: isDirect === true ? { ...command, plugin: 'direct-eni' } : command, needsClaim };
}
