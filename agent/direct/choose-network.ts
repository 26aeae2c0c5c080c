import { CNI_CODE } from '../api/cni-code.ts';
import type { AttachCommand } from '../attach-command.ts';
import { CniFailureError } from '../cni-failure.ts';
import { leaseKey } from '../journal/lease.ts';
import type { NetworkWish } from '../pods/network-word.ts';
import type { UseCaseDeps } from '../ports.ts';

/** What an ADD is carried out as. */
export type ChosenNetwork = {
  readonly command: AttachCommand;
  /** Its whole ENI has to be one that is kept or prepared for it. */
  readonly isOwn: boolean;
};

/** The watch brings a Pod before kubelet sends its ADD, as a rule; a question costs the API server more. */
const VIEW_WAIT_MS = 500;

/**
 * Decides whether a Pod shares an ENI or gets one as a whole: its annotation goes before the network configuration by which
 * it came here. The API server is waited for only where whole ENIs are served, and there only for a Pod that is not known.
 * @throws CniFailureError 11 when nobody can say: on the wrong ENI the Pod would have the wrong security groups.
 */
export async function chooseNetwork(
  deps: UseCaseDeps,
  command: AttachCommand,
  signal: AbortSignal,
): Promise<ChosenNetwork> {
  const { state } = deps;
  const held = state.leases.get(leaseKey(command.containerId, command.ifName));
  // Asked again: what it has is what it gets.
  if (held?.plugin === 'direct-eni' && command.plugin === 'route-eni')
    return as(command, { isDirect: true, isOwn: false });
  // Not of Kubernetes: it has no name that anything could be kept for.
  if (command.plugin === 'ipam' || command.podName === '') return { command, isOwn: false };
  const pod = { namespace: command.podNamespace, name: command.podName, uid: command.podUid };
  const known = state.networkWord.known(pod);
  if (known !== undefined) return as(command, known);
  if (command.plugin === 'route-eni' && state.supply?.direct === undefined) return { command, isOwn: false };
  await state.demandChanged.wait(VIEW_WAIT_MS, signal);
  const answer = state.networkWord.known(pod) ?? (await state.networkWord.ask(pod, signal));
  if (!('why' in answer)) return as(command, answer);
  throw new CniFailureError(
    CNI_CODE.tryAgainLater,
    `nobody can say yet whether ${pod.namespace}/${pod.name} needs an ENI of its own`,
    answer.why,
  );
}

function as(command: AttachCommand, { isDirect, isOwn }: NetworkWish): ChosenNetwork {
  return { command: isDirect === true ? { ...command, plugin: 'direct-eni' } : command, isOwn };
}
