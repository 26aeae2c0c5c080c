import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import { type Lease, type LeasePlugin, leaseKey } from '../journal/lease.ts';
import type { NetworkMode } from '../pods/network-mode-lookup.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import type { TimedAttachCommand } from './attach-command.ts';

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
 * Decides the network of a Pod: the one that it has already, else that of its annotation, else that of the configuration
 * that led to this ADD, else the default of the node. Asks the API server only where there is a choice, and only for a Pod
 * that the watch has not delivered.
 * @throws OtherNetworkError when another plugin may make the network; CniFailureError 7 when no network can be chosen by the annotation, or when it is none that a main plugin of others can make, or that a chained cilium-cni can protect; 11 when it cannot be determined: in the wrong
 * network the Pod would have the wrong address and security groups.
 */
export async function chooseNetwork(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  signal: AbortSignal,
): Promise<ChosenNetwork> {
  const key = leaseKey(command);
  const held = heldNetwork(deps.state.leases.get(key), command);
  if (held !== undefined) return { command: { ...command, plugin: held }, needsClaim: false };
  const chosen = await chooseByRequest(deps, command, signal);
  refuseOfCiliumPool(deps, chosen.command);
  refuseBesideCilium(deps, chosen.command);
  return chosen;
}

/**
 * Refuses a network that cilium-cni cannot protect. It takes the first veth pair in the Pod: with an exclusive ENI that is
 * the way to the node alone; on a bridge packets between Pods pass no routes, by which Cilium leads them to its programs.
 * @throws CniFailureError 7
 */
function refuseBesideCilium({ ciliumChain }: UseCaseDeps, { plugin, podNamespace, podName }: TimedAttachCommand): void {
  if (plugin !== 'direct-eni' && plugin !== 'bridge') return;
  const chain = ciliumChain();
  if (chain === undefined) return;
  throw new CniFailureError(
    CNI_CODE.invalidConf,
    `${podNamespace}/${podName} gets ${nameOf(plugin)}, and ${chain} chains cilium-cni, whose policies would not hold for it`,
    'give the Pod an address of a shared ENI, or run it on a node without cilium-cni',
  );
}

/** Refuses a network that the pool of a CiliumNode has no addresses for. @throws CniFailureError 7 */
function refuseOfCiliumPool({ settings }: UseCaseDeps, { plugin, podNamespace, podName }: TimedAttachCommand): void {
  if (!settings.isCiliumPool || (plugin !== 'direct-eni' && plugin !== 'bridge')) return;
  throw new CniFailureError(
    CNI_CODE.invalidConf,
    `${podNamespace}/${podName} asks for ${nameOf(plugin)}, and this node has the addresses of its CiliumNode alone (--supply-source=cilium-node)`,
    'take the request out of the Pod, or run it on another node',
  );
}

function nameOf(plugin: 'direct-eni' | 'bridge'): string {
  return plugin === 'bridge' ? 'GlobalRoute (tke-bridge)' : 'an exclusive ENI (tke-direct-eni)';
}

async function chooseByRequest(
  deps: UseCaseDeps,
  command: TimedAttachCommand,
  signal: AbortSignal,
): Promise<ChosenNetwork> {
  const { state } = deps;
  const key = leaseKey(command);
  if (command.plugin === 'ipam' && state.leases.has(key)) return { command, needsClaim: false };
  // Not a Pod of Kubernetes: without a name it can have no annotation and no claim.
  if (command.podName === '') return withMode(deps, command, { network: undefined, needsClaim: false });
  const pod = { namespace: command.podNamespace, name: command.podName, uid: command.podUid };
  const known = state.networkModeLookup.cached(pod);
  if (known !== undefined) return withMode(deps, command, known);
  if (!hasChoice(deps, command)) return { command, needsClaim: false };
  await state.demandChanged.wait(VIEW_WAIT_MS, signal);
  const answer = state.networkModeLookup.cached(pod) ?? (await state.networkModeLookup.fetch(pod, signal));
  if (!('why' in answer)) return withMode(deps, command, answer);
  // Another plugin makes the network, whatever the Pod asks for: its address does not depend on the API server.
  if (command.plugin === 'ipam') return { command, needsClaim: false };
  throw new CniFailureError(
    CNI_CODE.tryAgainLater,
    `it is not known yet which network ${pod.namespace}/${pod.name} needs`,
    answer.why,
  );
}

/** Ends an ADD whose Pod chose a network of another plugin, which the executable calls. The message is for one that cannot. */
export class OtherNetworkError extends Error {
  readonly network: string;

  constructor(network: string, message: string) {
    super(message);
    this.name = 'OtherNetworkError';
    this.network = network;
  }
}

/** The network of a repeated ADD: the attachment stays what it is. */
function heldNetwork(held: Lease | undefined, { plugin }: TimedAttachCommand): LeasePlugin | undefined {
  if (held === undefined || plugin !== 'route-eni') return undefined;
  if (held.plugin === 'direct-eni') return held.plugin;
  return held.state === 'active' && held.plugin !== 'ipam' ? held.plugin : undefined;
}

/** Reports whether Pods of this node may be in different networks. */
function hasChoice({ state, settings }: UseCaseDeps, { plugin }: TimedAttachCommand): boolean {
  if (plugin === 'direct-eni' || state.supply?.direct !== undefined) return true;
  return state.isBridgeDefault || state.podCidrs.length > 0 || settings.delegateConfDir !== '';
}

function withMode(
  { state, settings }: UseCaseDeps,
  command: TimedAttachCommand,
  { network, needsClaim, fault, otherNetwork }: NetworkMode,
): ChosenNetwork {
  if (command.plugin === 'ipam') return underMainPlugin(command, network);
  if (fault !== undefined) {
    const text = `no network can be chosen for ${command.podNamespace}/${command.podName}: ${fault}`;
    if (otherNetwork === undefined || settings.delegateConfDir === '')
      throw new CniFailureError(CNI_CODE.invalidConf, text);
    throw new OtherNetworkError(otherNetwork, text);
  }
  // The conflist that the agent installs names tke-route-eni for every Pod: that is no choice.
  const otherwise = command.plugin === 'route-eni' && state.isBridgeDefault ? 'bridge' : command.plugin;
  return { command: { ...command, plugin: network ?? otherwise }, needsClaim };
}

/** Name of a Pod's first link. @see container runtimes: containerd's and CRI-O's CNI_IFNAME */
const FIRST_LINK = 'eth0';

/**
 * Refuses a Pod that is known to ask for an exclusive ENI, or for GlobalRoute, where another main plugin makes its first link and
 * has only its address from us. A further link of the Pod is no answer to that request. Other names in the annotation are that plugin's: it was called for them.
 */
function underMainPlugin(command: TimedAttachCommand, network: NetworkMode['network']): ChosenNetwork {
  const isAsked = network === 'direct-eni' || network === 'bridge';
  if (!isAsked || command.ifName !== FIRST_LINK) return { command, needsClaim: false };
  const { podNamespace, podName, network: confName } = command;
  throw new CniFailureError(
    CNI_CODE.invalidConf,
    `${podNamespace}/${podName} asks for ${nameOf(network)}, which its network ${confName} cannot give: its addresses come from tke-eni-ipamc, those of shared ENIs`,
    'take the request out of the Pod, or run it on a node whose network configuration calls tke-route-eni',
  );
}
