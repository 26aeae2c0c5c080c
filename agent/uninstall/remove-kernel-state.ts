import { applyOperations } from '../../dataplane/apply.ts';
import { type AddressState, addressKey, EMPTY_STATE } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { flowtableDeleteCommands } from '../../dataplane/fast-path/flowtable.ts';
import { openFilterReader } from '../../dataplane/fast-path/observe-filters.ts';
import { hostVethAlias } from '../../dataplane/host-veth-name.ts';
import { canonicalAddress, hostPrefix } from '../../dataplane/ip-prefix.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { findHostVeths } from '../../dataplane/make-veth.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { nftDeleteCommands } from '../../dataplane/nft-table.ts';
import { BRIDGE_NAME, FLOWTABLE_TABLE, NFT_TABLE } from '../../dataplane/numbers.ts';
import { observeNetns } from '../../dataplane/observe.ts';
import { type Operation, renderOperation } from '../../dataplane/operation.ts';
import { decideBridgeRemoval } from '../../dataplane/remove-bridge.ts';
import { toAddress } from '../../dataplane/to-state.ts';
import { isNetlinkError } from '../../netlink/netlink-error.ts';
import type { JournalContent } from '../journal/journal-content.ts';
import type { KernelEvidence } from '../node/kernel-evidence.ts';
import { readHostDump } from '../node/node-probe.ts';
import type { Sweep } from './sweep.ts';

/** What is known of our state in the kernel. */
export type KernelTraces = { readonly journal: JournalContent; readonly evidence: KernelEvidence };

/**
 * Removes all our state from the host's kernel: Pod links, addresses of ENIs, the nftables tables, filters, rules, routes. Every
 * step finds its objects in the kernel itself, and what identifies an object is removed after it, so that a killed run
 * can simply be repeated. Foreign state (by protocol, table, priority, alias) is not touched. Idempotent.
 */
export async function removeKernelState(kernel: Kernel, traces: KernelTraces, sweep: Sweep): Promise<void> {
  await removeLinks(kernel, traces, sweep);
  // The rules that show an ENI's own address are removed after the address.
  for (const address of findEniAddresses(kernel, traces)) {
    await applyOne(kernel, { kind: 'delete-address', address }, sweep);
  }
  await removeNftTable(kernel, NFT_TABLE, nftDeleteCommands(), sweep);
  await removeNftTable(kernel, FLOWTABLE_TABLE, flowtableDeleteCommands(), sweep);
  const observed = observeNetns(kernel, EMPTY_STATE, openFilterReader(kernel).read);
  const { operations } = diffHost(EMPTY_STATE, observed);
  for (const operation of operations) await applyOne(kernel, operation, sweep);
  await removeBridge(kernel, sweep);
}

/** Removes the bridge of GlobalRoute Pods, if we made it and nothing is on it. */
async function removeBridge(kernel: Kernel, sweep: Sweep): Promise<void> {
  const removal = decideBridgeRemoval(kernel.rtnetlink.link.list(), BRIDGE_NAME);
  if (removal.kind === 'keep') sweep.leave(removal.why);
  if (removal.kind === 'delete') await applyOne(kernel, { kind: 'delete-bridge', bridge: removal.bridge }, sweep);
}

async function removeLinks({ rtnetlink }: Kernel, { journal, evidence }: KernelTraces, sweep: Sweep): Promise<void> {
  // Only a lease identifies a link that was made and has no alias yet; all others have their alias.
  const ofLeases = journal.leases.flatMap((lease) =>
    lease.hostVeth === undefined
      ? []
      : findHostVeths(rtnetlink, { alias: hostVethAlias(lease), hostVeth: lease.hostVeth }),
  );
  const links = new Map([...ofLeases, ...evidence.veths].map(({ ifindex, name }) => [ifindex, name]));
  await Promise.all(
    [...links].map(([ifindex, name]) =>
      sweep.step(`link ${name}`, async () => {
        try {
          await rtnetlink.link.deleteInBackground(ifindex);
          sweep.removed('link', name);
        } catch (error) {
          // It was deleted with its namespace.
          if (!isNetlinkError(error, 'ENODEV')) throw error;
        }
      }),
    ),
  );
}

/** Finds our addresses on the ENIs of this node: /32 and /128 of the ENI's own address, by the ENI's MAC. */
function findEniAddresses({ rtnetlink }: Kernel, { journal, evidence }: KernelTraces): readonly AddressState[] {
  const macs = new Map(journal.enis.map(({ eniId, mac }) => [eniId, mac]));
  const ofSupply = (journal.supply?.enis ?? []).map(({ eniId, mac, primary }) => ({
    mac: macs.get(eniId) ?? mac,
    primary,
  }));
  const known = [...ofSupply, ...evidence.enis].flatMap(({ mac, primary }) =>
    mac === undefined ? [] : primary.map(({ ip }) => ({ mac, prefix: hostPrefix(canonicalAddress(ip)) })),
  );
  const { links } = readHostDump(rtnetlink);
  const expected = links.flatMap(({ ifindex, ifname, address }) =>
    known.filter(({ mac }) => mac === address).map(({ prefix }) => ({ ifindex, ifname, prefix })),
  );
  const present = new Map(
    rtnetlink.address
      .list()
      .map((message) => toAddress(message, String))
      .map((address) => [addressKey(address), address]),
  );
  return [...new Map(expected.map((address) => [addressKey(address), address])).values()].filter(
    (address) => present.get(addressKey(address))?.prefix === address.prefix,
  );
}

async function removeNftTable(
  { nft }: Kernel,
  table: typeof NFT_TABLE | typeof FLOWTABLE_TABLE,
  commands: string,
  sweep: Sweep,
): Promise<void> {
  await sweep.step(`nftables table inet ${table}`, async () => {
    try {
      if ((await nft.read(table)) === undefined) return;
    } catch (error) {
      // Without the nft tool the agent has loaded no table.
      if (isNftError(error) && error.code === 'NFT_MISSING') return;
      throw error;
    }
    await nft.load(commands);
    sweep.removed('nftables table', `inet ${table}`);
  });
}

async function applyOne(kernel: Kernel, operation: Operation, sweep: Sweep): Promise<void> {
  const shown = renderOperation(operation);
  await sweep.step(shown, async () => {
    const { done } = await applyOperations(kernel, [operation]);
    if (done.length > 0) sweep.removed(operation.kind.replace(/^(delete|detach)-/, ''), shown);
  });
}
