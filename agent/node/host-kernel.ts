import { ApplyError, applyOperations } from '../../dataplane/apply.ts';
import type { HostState } from '../../dataplane/desired.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { observeNetns, observeNft } from '../../dataplane/observe.ts';
import type { Operation } from '../../dataplane/operation.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { HostLink } from '../eni/locate-enis.ts';
import { type FailedOperation, type HostKernel, isRemoval } from '../repair/reconcile.ts';

/** Binds the data plane's functions to the host's kernel, in the shape that reconciling asks for. */
export function openHostKernel(kernel: Kernel): HostKernel {
  return {
    links: () => kernel.rtnetlink.link.list().map(hostLinkOf),
    readNft: async (desired: HostState) =>
      desired.nft === undefined ? {} : await observeNft(kernel, desired.nft.text),
    observe: (desired, nft) => ({ ...observeNetns(kernel, desired), nft }),
    apply: (operations, onDone) => applyEach(kernel, operations, onDone),
  };
}

/**
 * One by one: repair keeps what it could do. A batch that takes all back on the first refusal would let one broken ENI
 * keep every other from being repaired.
 */
async function applyEach(
  kernel: Kernel,
  operations: readonly Operation[],
  onDone: (operation: Operation) => void,
): Promise<readonly FailedOperation[]> {
  const failed: FailedOperation[] = [];
  for (const operation of operations) {
    // What goes away last was replaced by what came before it. If that failed the old one is still in use.
    if (failed.length > 0 && isRemoval(operation)) continue;
    try {
      const { done } = await applyOperations(kernel, [operation]);
      if (done.length > 0) onDone(operation);
    } catch (error) {
      failed.push({ operation, error: error instanceof ApplyError ? error.cause : error });
    }
  }
  return failed;
}

function hostLinkOf({ ifindex, ifname, mtu, address, ifalias, kind }: LinkMessage): HostLink {
  return {
    ifindex,
    ifname,
    mtu,
    ...(address === undefined ? {} : { mac: address }),
    ...(ifalias === undefined ? {} : { ifalias }),
    ...(kind === undefined ? {} : { kind }),
  };
}
