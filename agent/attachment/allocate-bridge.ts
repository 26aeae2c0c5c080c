import type { BridgeNetwork } from '../../dataplane/network.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import { holdAddresses } from '../bridge/hold-addresses.ts';
import { leaseKey } from '../journal/lease.ts';
import { blockOfAddress } from '../pod-cidr/pod-cidr-supply.ts';
import type { LeaseResult, PoolAddress } from '../pool/pool-state.ts';
import { describeRegistered } from '../pool/registered-addresses.ts';
import type { UseCaseDeps } from '../state/ports.ts';
import type { TimedAttachCommand } from './attach-command.ts';
import { flushBeforeReuse } from './flush-before-reuse.ts';

/** An address of a block that is leased to a GlobalRoute Pod. */
export type BridgeAllocation = {
  readonly address: PoolAddress;
  /** The block, `address/length`. */
  readonly cidr: string;
  readonly bridge: BridgeNetwork;
};

/**
 * Takes an address of the node's podCIDR, and has the node prepared for Pods with one. Does not wait for an address: none
 * comes but by the end of a Pod. One that still cools is taken when no other is left, once its connection tracking entries
 * are deleted.
 * @throws CniFailureError 11 when the node has no podCIDR, no address is left, or the bridge cannot be set up
 */
export async function allocateBridge(deps: UseCaseDeps, command: TimedAttachCommand): Promise<BridgeAllocation> {
  const { state, clock } = deps;
  const key = leaseKey(command);
  const [cidr] = state.servingBlocks();
  if (cidr === undefined) throw noPodCidr(deps);
  const bridge = await deps.prepareBridge(cidr);
  for (;;) {
    const request = { key, families: [4] as const, nowMs: clock.bootMs() };
    let result: LeaseResult = state.bridgePool.lease(request);
    if (result.kind === 'exhausted') result = state.bridgePool.forceCool(request);
    const address = result.kind === 'leased' ? result.addresses[0] : undefined;
    if (result.kind === 'exhausted' || address === undefined) throw blockFull(deps, cidr);
    if (isReserved(deps, command, address.ip)) {
      state.isBlockFull = false;
      const { forced: ips, isUnderPressure } = result;
      await flushBeforeReuse(deps, {
        ...{ ips, isUnderPressure, warning: 'podCIDR is full, reusing an address', about: { key, ips } },
        coolAgain: () => {
          for (const ip of ips) deps.reservations.release({ ip, containerId: command.containerId });
          state.bridgePool.release({ key, nowMs: clock.bootMs(), cooldownMs: deps.settings.ipCooldownMs });
        },
      });
      return { address, cidr: blockOfAddress(address.ip, state.podCidrs) ?? cidr, bridge };
    }
    // host-local gave it to a Pod of another program, which is not taken over yet: each round holds one address more.
    state.bridgePool.release({ key, nowMs: clock.bootMs(), cooldownMs: 0 });
    holdAddresses(state, new Set([...state.heldIps, address.ip]));
  }
}

/** Reserves the address with host-local too, which another program may still use. */
function isReserved({ reservations }: UseCaseDeps, { containerId, ifName }: TimedAttachCommand, ip: string): boolean {
  return reservations.reserve({ ip, containerId, ifName }) === 'reserved';
}

function noPodCidr({ state }: UseCaseDeps): CniFailureError {
  const [refusal] = state.refusedBlocks.values();
  if (refusal !== undefined) {
    return new CniFailureError(
      CNI_CODE.tryAgainLater,
      `${refusal}, so no new Pod can be on the bridge`,
      'drain the node, delete its Node and let it register again; the podCIDRs of the cluster have to be outside of the VPC and of the Services',
    );
  }
  return new CniFailureError(
    CNI_CODE.tryAgainLater,
    'this node has no podCIDR yet, so no Pod can be on the bridge',
    `spec.podCIDR of its Node is written by tke-eni-ipamd or kube-controller-manager, with --allocate-node-cidrs${
      state.podCidrs.length === 0 ? '' : `; ${state.podCidrs.join(', ')} has no IPv4 address for a Pod`
    }`,
  );
}

/** The event is reported once, until an ADD has found an address again: each repetition of an ADD comes here. */
function blockFull({ state, events, metrics, settings }: UseCaseDeps, cidr: string): CniFailureError {
  const { leased, total } = state.bridgePool.counts();
  const held = state.heldIps.size === 0 ? '' : `, and ${state.heldIps.size} reserved by host-local`;
  const text = `all ${total} addresses of podCIDR ${cidr} are in use, ${leased} of them by Pods${held}`;
  const waiting = state.waitingCount();
  if (waiting > 0)
    return new CniFailureError(CNI_CODE.tryAgainLater, text, describeRegistered(waiting, settings.registeredWaitMs));
  const next = "lower the kubelet's maxPods, or register the node again with a larger block";
  metrics.podCidrFull.inc();
  if (!state.isBlockFull) events.report('Warning', 'PodCIDRFull', `${text}: ${next}`);
  state.isBlockFull = true;
  return new CniFailureError(CNI_CODE.tryAgainLater, text, next);
}
