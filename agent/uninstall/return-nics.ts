import { releaseNic, returnNic } from '../../dataplane/exclusive-nic.ts';
import { parseNicAlias } from '../../dataplane/host-veth-name.ts';
import type { Kernel } from '../../dataplane/kernel.ts';
import { DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import { openOwnNetns } from '../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../netlink/rtnetlink.ts';
import { openSandboxes } from '../host/sandboxes.ts';
import { leaseKey } from '../journal/lease.ts';
import { readSandboxPeers } from '../node/read-sandbox-peers.ts';
import type { KernelTraces } from './remove-kernel-state.ts';
import type { Sweep } from './sweep.ts';

/** The interface of a whole ENI that may be in a Pod. */
type NicInPod = { readonly netns: string; readonly mac: string; readonly hostName: string; readonly mtu: number };

/**
 * Brings the interfaces of whole ENIs back from the Pods that have them, and resets those that returned by themselves.
 * They are found by the journal, or by the links beside them: so run it before those links are removed. Idempotent.
 */
export async function returnNics(kernel: Kernel, traces: KernelTraces, hostRoot: string, sweep: Sweep): Promise<void> {
  const { rtnetlink } = kernel;
  const sandboxes = openSandboxes(hostRoot);
  using hostNetns = openOwnNetns();
  for (const { netns, mac, hostName, mtu } of findNicsInPods(traces, hostRoot)) {
    await sweep.step(`interface ${hostName}`, async () => {
      const podNetns = sandboxes.find(netns);
      try {
        const nic = { mac, hostName, mtu, addresses: [] };
        if (returnNic(rtnetlink, hostNetns, podNetns, { nic }) === 'back')
          sweep.removed('interface in a Pod', hostName);
      } finally {
        podNetns?.close();
      }
    });
  }
  for (const link of rtnetlink.link.list()) {
    const owner = parseNicAlias(link.ifalias ?? '');
    if (owner === undefined) continue;
    await sweep.step(`interface ${link.ifname}`, async () =>
      releaseNic(rtnetlink, link, { mac: link.address ?? '', hostName: owner.hostName, mtu: 0 }),
    );
  }
}

function findNicsInPods({ journal, evidence }: KernelTraces, hostRoot: string): readonly NicInPod[] {
  const ofLeases = journal.leases.flatMap(({ netns, nic }): readonly NicInPod[] =>
    nic === undefined ? [] : [{ netns, mac: nic.mac, hostName: nic.hostName, mtu: nic.mtu }],
  );
  const known = new Set(journal.leases.map(({ containerId, ifName }) => leaseKey(containerId, ifName)));
  const unknown = evidence.veths.filter(
    ({ table, containerId, ifName }) => table === DIRECT_LINK_GROUP && !known.has(leaseKey(containerId, ifName)),
  );
  const peers = readSandboxPeers({ hostRoot, openRtnetlinkIn: (netns) => openRtnetlinkIn(netns) }, unknown, new Map());
  const found = [...peers.values()].flatMap(({ netns, podMac, nic }): readonly NicInPod[] =>
    nic === undefined ? [] : [{ netns, mac: podMac, hostName: nic.hostName, mtu: nic.mtu }],
  );
  return [...ofLeases, ...found];
}
