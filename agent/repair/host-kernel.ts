import { ApplyError, applyOperations } from '../../dataplane/apply.ts';
import type { HostState } from '../../dataplane/desired.ts';
import { releaseNic } from '../../dataplane/exclusive-nic.ts';
import { openFilterReader } from '../../dataplane/fast-path/observe-filters.ts';
import { findNic } from '../../dataplane/find-nic.ts';
import { isFlowtableOperation } from '../../dataplane/flowtable-operation.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { observeFlowtable, observeNetns, observeNft } from '../../dataplane/observe.ts';
import type { Operation } from '../../dataplane/operation.ts';
import { ownPrefix } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { RT_SCOPE_LINK } from '../../netlink/uapi/rtnetlink.ts';
import type { HostLink } from '../node/host-link.ts';
import { reliesOn } from '../recorder/operation-scope.ts';
import type { FailedOperation, HostKernel } from './reconcile.ts';

/**
 * Binds the data plane's functions to the host's kernel, in the shape that reconciling requires.
 * @param noteBefore Called with each operation before it is done.
 */
export function openHostKernel(kernel: Kernel, noteBefore: (operation: Operation) => void = () => {}): HostKernel {
  const nft = openCache(
    (text: string) => observeNft(kernel, text),
    () => true,
  );
  // One of an agent before this one is found by the first look: only an agent makes one.
  const flowtables = openCache(
    (text: string | undefined) => observeFlowtable(kernel, text),
    (text) => text !== undefined,
  );
  const filters = openFilterReader(kernel);
  return {
    // A link without a readable name cannot be configured; its ENI counts as missing, the others go on.
    links: () =>
      kernel.rtnetlink
        .skipUnreadable(() => kernel.rtnetlink.link.list())
        .result.filter(({ ifname }) => ifname !== '')
        .map(hostLinkOf),
    readNft: async (desired: HostState) => {
      if (desired.nft === undefined) return {};
      const flowtable = await flowtables.observe(desired.flowtable?.text);
      return { ...(await nft.observe(desired.nft.text)), ...(flowtable && { flowtable }) };
    },
    invalidateNft: () => {
      nft.invalidate();
      flowtables.invalidate();
    },
    invalidateFilters: filters.invalidate,
    forgetFilters: filters.forget,
    addressesOn: (ifindex) =>
      kernel.rtnetlink.address
        .list({ ifindex })
        .filter(({ scope }) => scope !== RT_SCOPE_LINK)
        .map(ownPrefix),
    sysctl: (path) => kernel.sysctl.find({ path }),
    canKeepConnections: () => kernel.connections?.canKeep() === true,
    resetNic: (nic) => {
      const { link } = kernel.rtnetlink;
      const found = findNic(link.list(), nic.mac);
      if (found === undefined) return undefined;
      releaseNic(kernel.rtnetlink, found, nic);
      const now = link.get({ ifindex: found.ifindex });
      return now && hostLinkOf(now);
    },
    observe: (desired, found) => {
      const { result, unreadable } = kernel.rtnetlink.skipUnreadable(() => observeNetns(kernel, desired, filters.read));
      return { ...result, nft: found, ...(unreadable.length === 0 ? {} : { unreadable }) };
    },
    apply: async (operations, onDone) => {
      try {
        return await applyEach(kernel, operations, noteBefore, onDone);
      } finally {
        // The kernel's notifications would cause this too, a moment later.
        for (const operation of operations) {
          if (operation.kind === 'attach-filter' || operation.kind === 'detach-filter')
            filters.invalidate(operation.filter.ifindex);
        }
        if (operations.some(({ kind }) => kind === 'load-nft')) nft.invalidate();
        if (operations.some(isFlowtableOperation)) flowtables.forget();
      }
    },
  };
}

/** Remembers a table as it was observed for a wanted text. */
type TableCache<W, O> = {
  observe(wanted: W): Promise<O>;
  /** Makes the next `observe` read the kernel, if what was wanted may be changed by others. */
  invalidate(): void;
  /** Makes the next `observe` read the kernel. */
  forget(): void;
};

/**
 * Caches an nftables table, which saves the child process in a pass that a route or a rule caused: the kernel notifies
 * every change of nftables.
 * @param mayChange whether others may change the table while this is wanted
 */
function openCache<W, O>(read: (wanted: W) => Promise<O>, mayChange: (wanted: W) => boolean): TableCache<W, O> {
  let known: { readonly wanted: W; readonly observed: O } | undefined;
  let generation = 0;
  const forget = (): void => {
    known = undefined;
    generation++;
  };
  return {
    observe: async (wanted) => {
      if (known !== undefined && known.wanted === wanted) return known.observed;
      const before = generation;
      const observed = await read(wanted);
      // What changed while nft was listing may be in the listing or not.
      known = before === generation ? { wanted, observed } : undefined;
      return observed;
    },
    invalidate: () => {
      if (known === undefined || mayChange(known.wanted)) forget();
    },
    forget,
  };
}

/**
 * Applies operations one by one, so that repair keeps what succeeded. A batch that is undone at the first refusal would
 * let one broken ENI prevent every other repair.
 */
async function applyEach(
  kernel: Kernel,
  operations: readonly Operation[],
  noteBefore: (operation: Operation) => void,
  onDone: (operation: Operation) => void,
): Promise<readonly FailedOperation[]> {
  const failed: FailedOperation[] = [];
  for (const operation of operations) {
    // Removals come last, after what replaces them. If that failed, the old object is still in use.
    const undone = failed.map((failure) => failure.operation);
    if (reliesOn(operation, undone)) continue;
    noteBefore(operation);
    try {
      const { done } = await applyOperations(kernel, [operation]);
      if (done.length > 0) onDone(operation);
    } catch (error) {
      failed.push({ operation, error: error instanceof ApplyError ? error.cause : error });
    }
  }
  return failed;
}

function hostLinkOf({ ifindex, ifname, mtu, address, permAddress, ifalias, kind, flags }: LinkMessage): HostLink {
  return {
    ifindex,
    ifname,
    mtu,
    isUp: (flags & IFF_UP) !== 0,
    ...(address === undefined ? {} : { mac: address }),
    ...(permAddress === undefined ? {} : { permAddress }),
    ...(ifalias === undefined ? {} : { ifalias }),
    ...(kind === undefined ? {} : { kind }),
  };
}
