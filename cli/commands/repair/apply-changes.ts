import { leaseKey } from '../../../agent/journal/lease.ts';
import { ApplyError, applyOperations } from '../../../dataplane/apply.ts';
import type { Kernel } from '../../../dataplane/kernel.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { type Change, renderChange } from '../../../inspection/judge/change.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { AgentFacts } from '../../../inspection/node/node-facts.ts';
import { readAgentFacts } from '../../../inspection/node/read-agent-facts.ts';
import type { NodeContext } from '../../../inspection/node/read-node-facts.ts';
import { netnsPathOf } from '../../../inspection/node/with-node-netns.ts';
import { LibcError } from '../../../netlink/errno.ts';
import { NetlinkError } from '../../../netlink/netlink-error.ts';
import { type Netns, NetnsError, openNetns } from '../../../netlink/netns.ts';
import { openRtnetlink, openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { messageOf } from '../../../runtime/error-text.ts';
import { resolveHostPath } from '../../../runtime/host-path.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';
import type { FailedChange } from './repair.ts';

/** Changes that were made, and those that failed. */
export type Applied = { readonly done: readonly string[]; readonly failed: readonly FailedChange[] };

/**
 * Makes changes one by one. The others continue after a failure, but nothing is removed any more: a removal at the end
 * relies on the replacement made before it. Pods and orphaned veths are looked up in the journal again right before
 * each change, since an ADD or a DEL may have come in between.
 * @param onDone gets each change after it is made, as the command that makes it by hand
 */
export async function applyChanges(
  { global }: NodeContext,
  changes: readonly Change[],
  onDone: (line: string) => void,
): Promise<Applied> {
  const done: string[] = [];
  const failed: FailedChange[] = [];
  for (const change of changes) {
    const line = renderChange(change);
    if (failed.length > 0 && isRemoval(change)) {
      failed.push({ line, error: 'left, because a change before it failed' });
      continue;
    }
    try {
      const staleReason = staleReasonOf(change, () => ifKnown(readAgentFacts(global.stateDir)));
      if (staleReason !== undefined) throw new StaleChangeError(staleReason);
      await applyOne(global, change);
      done.push(line);
      onDone(line);
    } catch (error) {
      failed.push({ line, error: reasonOf(error) });
    }
  }
  return { done, failed };
}

/** The change does not apply any more: its Pod or veth changed in the meantime. */
class StaleChangeError extends Error {}

function staleReasonOf(change: Change, readAgent: () => AgentFacts | undefined): string | undefined {
  if (change.kind === 'host') return undefined;
  const agent = readAgent();
  if (agent === undefined) return 'the journal cannot be read any more';
  const lease = agent.journal.leases.find((one) => leaseKey(one) === change.key);
  if (change.kind === 'delete-veth') return lease === undefined ? undefined : 'it has a lease now';
  return lease?.state === 'active' && lease.netns === change.netns ? undefined : 'its Pod is in teardown';
}

async function applyOne(global: NodeContext['global'], change: Change): Promise<void> {
  if (change.kind === 'pod') {
    using netns = openNetns(resolveHostPath(global.hostRoot, change.netns));
    using rtnetlink = openRtnetlinkIn(netns);
    await applyOperations({ rtnetlink, sysctl: openSysctl(netns), nft: openNft() }, [change.operation]);
    return;
  }
  using node = global.netns === undefined ? undefined : openNetns(netnsPathOf(global));
  using rtnetlink = node === undefined ? openRtnetlink() : openRtnetlinkIn(node);
  if (change.kind === 'delete-veth') {
    const link = rtnetlink.link.get({ ifindex: change.ifindex });
    // If the link is already missing, the goal is reached. A new link with the same index must not be touched.
    if (link !== undefined && link.ifname === change.ifname) rtnetlink.link.delete({ ifindex: change.ifindex });
    return;
  }
  await applyOperations(kernelOf(global, node, rtnetlink), [change.operation]);
}

function kernelOf(global: NodeContext['global'], node: Netns | undefined, rtnetlink: Kernel['rtnetlink']): Kernel {
  const nft = openNft(node === undefined ? {} : { netnsPath: netnsPathOf(global) });
  return { rtnetlink, sysctl: openSysctl(node), nft };
}

function isRemoval(change: Change): boolean {
  return change.kind === 'delete-veth' || change.operation.kind.startsWith('delete-');
}

function reasonOf(error: unknown): string {
  const cause = error instanceof ApplyError ? error.cause : error;
  const isExpected =
    error instanceof ApplyError ||
    cause instanceof StaleChangeError ||
    cause instanceof NetnsError ||
    cause instanceof LibcError ||
    cause instanceof NetlinkError;
  if (!isExpected) throw error;
  return messageOf(cause);
}
