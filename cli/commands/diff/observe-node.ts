import { existsSync } from 'node:fs';
import { leaseKey } from '../../../agent/journal/lease.ts';
import { openFilterReader } from '../../../dataplane/fast-path/observe-filters.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { NftError } from '../../../dataplane/nft-error.ts';
import { observeFlowtable, observeNetns, observeNft } from '../../../dataplane/observe.ts';
import type { ObservedHost, ObservedNft } from '../../../dataplane/observed.ts';
import { PlanError } from '../../../dataplane/plan-node.ts';
import { type DesiredNode, desiredOfNode, type Unjudged } from '../../../inspection/desired/desired-of.ts';
import { isUnchanged, mergeJournals } from '../../../inspection/desired/merge-journals.ts';
import { lostVeths } from '../../../inspection/judge/compare-links.ts';
import { compareNode, type RecordedSnapshot } from '../../../inspection/judge/compare-node.ts';
import type { PodSnapshot } from '../../../inspection/judge/compare-pod.ts';
import { isDifferent } from '../../../inspection/judge/difference.ts';
import type { AgentFacts, NodeFacts } from '../../../inspection/node/node-facts.ts';
import { readAgentFacts } from '../../../inspection/node/read-agent-facts.ts';
import { type NodeContext, readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { netnsPathOf, withNodeNetns } from '../../../inspection/node/with-node-netns.ts';
import { LibcError } from '../../../netlink/errno.ts';
import { NetlinkError } from '../../../netlink/netlink-error.ts';
import { NetnsError, openNetns } from '../../../netlink/netns.ts';
import { openRtnetlink, openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { resolveHostPath } from '../../../runtime/host-path.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';
import { SysctlError } from '../../../sysctl/sysctl-error.ts';
import { askHandlers } from '../../agent/ask-handlers.ts';
import type { CommandContext } from '../../command/command.ts';
import { readVethPeers } from './read-veth-peers.ts';

/**
 * Number of reads. One takes about 100 ms. A node that changes during each of them is compared by what stayed the same.
 */
const MAX_READS = 4;

/** Wait before a difference is confirmed, milliseconds: a pass of the agent changes the kernel first and its record last. */
const CONFIRM_MS = 300;

/**
 * Reads a node and plans its desired state; changes nothing. When an ADD or DEL changed the journal during the read,
 * the recorded and the observed state do not match, and the node is read again. So is a node that differs: what only
 * one of two reads shows is a change that the agent is making. After the last read, leases that changed are left out.
 * @param pause waits before a difference is confirmed
 * @throws UserError NO_JOURNAL when there is no record of the desired state; KERNEL, FORBIDDEN when it cannot be read
 */
export async function observeNode(
  context: Pick<CommandContext, 'global'>,
  pause: () => Promise<unknown> = () => systemClock.sleep(CONFIRM_MS),
): Promise<RecordedSnapshot> {
  let earlier: RecordedSnapshot | undefined;
  let wasSame = false;
  for (let attempt = 1; ; attempt++) {
    const snapshot = await observeOnce(context);
    const after = readAgentFacts(context.global.stateDir);
    const isSame = after.kind === 'unknown' || isUnchanged(snapshot.agent, after.value);
    if (isSame && !compareNode(snapshot).differences.some(isDifferent)) return snapshot;
    const latest = isSame ? snapshot : withoutChangedLeases(snapshot, after.value);
    if (earlier !== undefined && ((isSame && wasSame) || attempt === MAX_READS)) return { ...latest, earlier };
    if (isSame) await pause();
    earlier = latest;
    wasSame = isSame;
  }
}

/** Removes from a snapshot the leases that were added, deleted or changed while it was taken. */
function withoutChangedLeases(snapshot: RecordedSnapshot, after: AgentFacts): RecordedSnapshot {
  const agent = { ...after, journal: mergeJournals(snapshot.agent.journal, after.journal) };
  const { nft } = snapshot.desired.host;
  const planned = desiredNode(agent, snapshot.facts);
  const desired = nft === undefined ? withoutNft(planned) : { ...planned, host: { ...planned.host, nft } };
  return { ...snapshot, agent, desired, pods: snapshot.pods.filter(({ key }) => desired.networks.has(key)) };
}

async function observeOnce(context: Pick<CommandContext, 'global'>): Promise<RecordedSnapshot> {
  const facts = await readNodeFacts(context, {
    nft: false,
    sysctls: false,
    handlers: () => askHandlers(context.global),
  });
  if (facts.agent.kind === 'unknown') {
    const { why, next } = facts.agent;
    throw new UserError('NO_JOURNAL', `the desired state of this node is not known: ${why}`, next);
  }
  const agent = facts.agent.value;
  if (agent.needsAdoption === true) throw beforeAdoption();
  const desired = desiredNode(agent, facts);
  const { nft, unread } = await observeNftTable(context, desired);
  const { result, unreadable } = withNodeNetns(context.global, (netns) => {
    using rtnetlink = netns === undefined ? openRtnetlink() : openRtnetlinkIn(netns);
    const kernel = { rtnetlink, sysctl: openSysctl(netns) };
    return rtnetlink.skipUnreadable(() => observeNetns(kernel, desired.host, openFilterReader(kernel).read));
  });
  const host: ObservedHost = { ...result, nft };
  const pods = observePods(context, facts, desired);
  return {
    agent,
    facts,
    desired: nft === SAME_NFT ? withoutNft(desired) : desired,
    host,
    pods: pods.flatMap((pod) => ('snapshot' in pod ? [pod.snapshot] : [])),
    peers: readVethPeers(context.global, facts.host.links, lostVeths(facts, agent)),
    deadSandboxes: deadSandboxes(context, agent),
    unread: [
      ...unread,
      ...unreadable.map((why) => ({
        what: 'an object of the kernel',
        why,
        next: 'ip -d link; ip rule; ip route show table all',
      })),
      ...pods.flatMap((pod) => ('unread' in pod ? [pod.unread] : [])),
    ],
  };
}

/**
 * Returns the error for a journal that was created again. It lacks the running Pods until the agent has adopted them: a
 * comparison with it would delete all of them.
 */
function beforeAdoption(): UserError {
  const why = 'its journal was created again, and no agent has adopted the running Pods yet';
  const next = 'start the agent and wait until tke-eni status says ready: it adopts them first';
  return new UserError('NO_JOURNAL', `the desired state of this node is not known: ${why}`, next);
}

function deadSandboxes({ global }: NodeContext, { journal }: AgentFacts): ReadonlySet<string> {
  const dead = journal.leases.filter(({ netns }) => !existsSync(resolveHostPath(global.hostRoot, netns)));
  return new Set(dead.map(leaseKey));
}

/**
 * Stands for nftables tables that could not be read. The plan's tables are removed then, so that they are not reported as
 * missing.
 */
const SAME_NFT: ObservedNft = {};

function withoutNft(desired: DesiredNode): DesiredNode {
  const { nft: _nft, flowtable: _flowtable, ...host } = desired.host;
  return { ...desired, host };
}

/** Plans the desired state with the present interface indexes in the Pods. @throws UserError NO_JOURNAL */
function desiredNode(agent: AgentFacts, facts: NodeFacts): DesiredNode {
  try {
    return desiredOfNode(agent, facts);
  } catch (error) {
    if (!(error instanceof PlanError)) throw error;
    const next = 'restart the agent: it plans again, and its log has the same error if it cannot';
    throw new UserError('NO_JOURNAL', `no plan can be made from the agent’s records: ${error.message}`, next, {
      cause: error,
    });
  }
}

type NftSnapshot = { readonly nft: ObservedNft; readonly unread: readonly Unjudged[] };

async function observeNftTable({ global }: NodeContext, desired: DesiredNode): Promise<NftSnapshot> {
  const { nft, flowtable } = desired.host;
  if (nft === undefined) return { nft: {}, unread: [] };
  try {
    const netnsPath = global.netns === undefined ? {} : { netnsPath: netnsPathOf(global) };
    const kernel = { nft: openNft(netnsPath) };
    const found = await observeFlowtable(kernel, flowtable?.text);
    return { nft: { ...(await observeNft(kernel, nft.text)), ...(found && { flowtable: found }) }, unread: [] };
  } catch (error) {
    if (!(error instanceof NftError)) throw error;
    const next =
      error.code === 'NFT_MISSING' ? 'install nft (package nftables)' : 'run nft list ruleset by hand, as root';
    return { nft: SAME_NFT, unread: [{ what: 'nftables table inet tke_eni', why: error.message, next }] };
  }
}

type PodObservation = { readonly snapshot: PodSnapshot } | { readonly unread: Unjudged };

function observePods({ global }: NodeContext, facts: NodeFacts, desired: DesiredNode): readonly PodObservation[] {
  return facts.pods.flatMap(({ key, lease, inside }): readonly PodObservation[] => {
    const network = desired.networks.get(key);
    // The inside of a Pod with a whole ENI is compared by the agent's CHECK; another plugin wired those of `ipam`.
    if (network === undefined || lease.kind === 'unknown') return [];
    if (network.kind !== 'route-eni' && network.kind !== 'bridge') return [];
    const what = `inside of Pod ${key}`;
    if (inside.kind === 'unknown') return [{ unread: { what, why: inside.why, next: inside.next } }];
    const planned = desired.pods.get(key);
    if (planned === undefined) {
      const next = 'delete the Pod: its interface cannot be made again under a running container';
      return [{ unread: { what, why: `it has no interface ${network.podVeth.name}`, next } }];
    }
    const path = lease.value.netns;
    try {
      using netns = openNetns(resolveHostPath(global.hostRoot, path));
      using rtnetlink = openRtnetlinkIn(netns);
      const observed = observeNetns({ rtnetlink, sysctl: openSysctl(netns) }, planned);
      return [{ snapshot: { key, netns: path, network, desired: planned, observed } }];
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return [{ unread: { what, why: error.message, next: 'look for its sandbox with crictl pods' } }];
    }
  });
}

function isUnreadable(error: unknown): error is Error {
  return (
    error instanceof NetnsError ||
    error instanceof LibcError ||
    error instanceof NetlinkError ||
    error instanceof SysctlError
  );
}
