import { applyOperations } from '../../dataplane/apply.ts';
import { type AddressState, addressKey, EMPTY_STATE } from '../../dataplane/desired.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { releaseNic, returnNic } from '../../dataplane/exclusive-nic.ts';
import { flowtableDeleteCommands } from '../../dataplane/fast-path/flowtable.ts';
import { openFilterReader } from '../../dataplane/fast-path/observe-filters.ts';
import { permanentMac } from '../../dataplane/find-nic.ts';
import { hostVethAlias, parseNicAlias } from '../../dataplane/host-veth-name.ts';
import { canonicalAddress, hostPrefix } from '../../dataplane/ip-prefix.ts';
import type { Kernel, NodeKernel } from '../../dataplane/kernel.ts';
import { findHostVeths } from '../../dataplane/make-veth.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { nftDeleteCommands } from '../../dataplane/nft-replace.ts';
import { BRIDGE_NAME, DIRECT_LINK_GROUP, FLOWTABLE_TABLE, NFT_TABLE } from '../../dataplane/numbers.ts';
import { observeNetns } from '../../dataplane/observe.ts';
import { type Operation, renderOperation } from '../../dataplane/operation.ts';
import { decideBridgeRemoval } from '../../dataplane/remove-bridge.ts';
import { toAddress } from '../../dataplane/to-state.ts';
import { isNetlinkError } from '../../netlink/netlink-error.ts';
import { openOwnNetns } from '../../netlink/netns.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';
import { openSandboxes } from '../host/sandboxes.ts';
import type { JournalContent } from '../journal/journal-content.ts';
import { leaseKey } from '../journal/lease.ts';
import { hasForeignValue, isShared, linkRestoration } from '../node/decide-restoration.ts';
import type { FoundLink, FoundState, FoundSysctl } from '../node/found-state.ts';
import type { KernelEvidence } from '../node/kernel-evidence.ts';
import { openNamespaces } from '../node/namespaces.ts';
import { readHostDump } from '../node/node-probe.ts';
import { readSandboxPeers } from '../node/read-sandbox-peers.ts';
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
  const expected = links.flatMap((link) =>
    known
      .filter(({ mac }) => mac === permanentMac(link))
      .map(({ prefix }) => ({ ifindex: link.ifindex, ifname: link.ifname, prefix })),
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

async function applyOne(kernel: Kernel, operation: Operation, sweep: Sweep, isThere = () => true): Promise<void> {
  const shown = renderOperation(operation);
  await sweep.step(shown, async () => {
    if (!isThere()) return;
    const { done } = await applyOperations(kernel, [operation]);
    if (done.length > 0) sweep.removed(operation.kind.replace(/^(delete|detach)-/, ''), shown);
  });
}

/** The interface of a whole ENI that may be in a Pod. */
type NicInPod = { readonly netns: string; readonly mac: string; readonly hostName: string; readonly mtu: number };

/**
 * Brings the interfaces of whole ENIs back from the Pods that have them, and resets those that returned by themselves.
 * They are found by the journal, or by the links beside them: so run it before those links are removed. Idempotent.
 */
export async function returnNics(
  kernel: NodeKernel,
  traces: KernelTraces,
  hostRoot: string,
  sweep: Sweep,
): Promise<void> {
  const { rtnetlink } = kernel;
  const sandboxes = openSandboxes(openNamespaces(hostRoot));
  using hostNetns = openOwnNetns();
  for (const { netns, mac, hostName, mtu } of findNicsInPods(traces, hostRoot)) {
    const name = hostName === '' ? `of MAC ${mac}` : hostName;
    await sweep.step(`interface ${name}`, async () => {
      const podNetns = sandboxes.find(netns);
      try {
        const nic = { mac, hostName, mtu, addresses: [] };
        if (returnNic(kernel, hostNetns, podNetns, { nic }) === 'back') sweep.removed('interface in a Pod', name);
      } finally {
        podNetns?.close();
      }
    });
  }
  for (const link of rtnetlink.link.list()) {
    if (parseNicAlias(link.ifalias ?? '') === undefined) continue;
    // Of no lease: nothing trustworthy has its former name and MTU.
    await sweep.step(`interface ${link.ifname}`, async () =>
      releaseNic(rtnetlink, link, { mac: permanentMac(link) ?? '', hostName: '', mtu: 0 }),
    );
  }
}

function findNicsInPods({ journal, evidence }: KernelTraces, hostRoot: string): readonly NicInPod[] {
  const ofLeases = journal.leases.flatMap(({ netns, nic }): readonly NicInPod[] =>
    nic === undefined ? [] : [{ netns, mac: nic.mac, hostName: nic.hostName, mtu: nic.mtu }],
  );
  const known = new Set(journal.leases.map(leaseKey));
  const unknown = evidence.veths.filter(
    ({ table, containerId, ifName }) => table === DIRECT_LINK_GROUP && !known.has(leaseKey({ containerId, ifName })),
  );
  const peers = readSandboxPeers(openNamespaces(hostRoot), unknown, new Map());
  const found = [...peers.values()].flatMap(({ netns, podMac, nic }): readonly NicInPod[] =>
    nic === undefined ? [] : [{ netns, mac: podMac, hostName: '', mtu: 0 }],
  );
  return [...ofLeases, ...found];
}

/**
 * Deletes the addresses that agents of this boot added, and restores the settings that the first of them found. One that was changed by others since stays as it is.
 * Forwarding stays on, and with it the setting by which a forwarding host accepts router advertisements: kubelet's own
 * networking and every other CNI plugin need them, and do not set them a second time. Idempotent.
 */
export async function restoreSettings(kernel: Kernel, found: FoundState, sweep: Sweep): Promise<void> {
  for (const address of found.addresses ?? []) {
    const isThere = () => kernel.rtnetlink.link.get({ ifindex: address.ifindex })?.ifname === address.ifname;
    await applyOne(kernel, { kind: 'delete-address', address }, sweep, isThere);
  }
  for (const sysctl of found.sysctls) await restoreSysctl(kernel, sysctl, sweep);
  for (const link of found.links) await restoreLink(kernel, link, sweep);
}

async function restoreSysctl(kernel: Kernel, sysctl: FoundSysctl, sweep: Sweep): Promise<void> {
  const key = { path: sysctl.path };
  const name = sysctlName(key);
  await sweep.step(`sysctl ${name}`, () => {
    const now = kernel.sysctl.find(key);
    // The interface does not exist any more, or the value is restored already.
    if (now === undefined || now === sysctl.found) return;
    if (hasForeignValue(sysctl, now)) return sweep.leave(`${name}=${now}: it was changed after we set ${sysctl.set}`);
    if (isShared(sysctl)) return sweep.leave(`${name}=${now}: others rely on it; it was ${sysctl.found}`);
    kernel.sysctl.set(key, sysctl.found);
    sweep.restored(`sysctl -w ${name}=${sysctl.found}`);
  });
}

async function restoreLink(kernel: Kernel, entry: FoundLink, sweep: Sweep): Promise<void> {
  const { ifindex, ifname } = entry;
  await sweep.step(`link ${ifname}`, async () => {
    const now = kernel.rtnetlink.link.get({ ifindex });
    if (now === undefined || now.ifname !== ifname) return;
    const operation = linkRestoration(entry, { isUp: ((now.flags ?? 0) & IFF_UP) !== 0, mtu: now.mtu });
    if (operation === undefined) return;
    await applyOperations(kernel, [operation]);
    sweep.restored(renderOperation(operation));
  });
}
