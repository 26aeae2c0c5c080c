import { join } from 'node:path';
import { enterNetns } from '../../dataplane/enter-netns.ts';
import type { Kernel, NodeKernel } from '../../dataplane/kernel.ts';
import { openNft } from '../../dataplane/nft.ts';
import { RTPROT_TKE_ENI, TABLE_MAIN } from '../../dataplane/numbers.ts';
import { ownAddress } from '../../netlink/address-message.ts';
import { openRtnetlink } from '../../netlink/rtnetlink.ts';
import { type Clock, timeoutSignal } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { openSysctl } from '../../sysctl/sysctl.ts';
import { AgentError } from '../api/agent-error.ts';
import { openCriView } from '../cri/cri-client.ts';
import type { CriSandbox } from '../cri/sandbox-view.ts';
import { openSandboxes } from '../host/sandboxes.ts';
import { readBootId } from '../journal/boot-id.ts';
import { openJournal } from '../journal/journal.ts';
import type { JournalContent } from '../journal/journal-content.ts';
import { findNodeRecord } from '../journal/node-file.ts';
import { FOUND_STATE_FILE, readFoundState } from '../node/found-state.ts';
import { openNamespaces } from '../node/namespaces.ts';
import { readHostDump } from '../node/node-probe.ts';
import { type HostDump, readEvidence } from '../node/read-evidence.ts';
import { refuseLiveSocket } from '../server/unix-socket.ts';
import { type AttachmentFacts, describeLive, findLiveAttachments } from './find-live-attachments.ts';
import { removeExecutables } from './remove-executables.ts';
import {
  removeConfiguration,
  removeDelegations,
  removeDevicePluginSockets,
  removeReservations,
  removeState,
} from './remove-files.ts';
import { type KernelTraces, removeKernelState, restoreSettings, returnNics } from './remove-kernel-state.ts';
import { Sweep } from './sweep.ts';
import type { UninstallConfig } from './uninstall-config.ts';

/** What an uninstallation gets from its process. */
type UninstallRuntime = { readonly clock: Clock; readonly log: Logger };

/** Timeout of the one question to the runtime; on a node under load it takes long to answer. */
const LIST_TIMEOUT_MS = 10_000;

/**
 * Leaves the node as it was before the first agent: removes our network configuration, executables, kernel state and
 * files, restores settings, and reports what it left to others. What identifies an object is removed after it, and the
 * journal, which is locked meanwhile, is removed last: after a kill at any moment the next run does the rest. On a
 * clean node it does nothing.
 * @throws AgentError ANOTHER_AGENT while an agent serves, PODS_LIVE while Pods of ours may run, UNINSTALL when
 * something could not be removed; JournalError JOURNAL_LOCKED while an agent starts.
 */
export async function uninstall(config: UninstallConfig, { clock, log }: UninstallRuntime): Promise<void> {
  await refuseLiveSocket(config.socket);
  const sweep = new Sweep(log);
  const kernel: NodeKernel = { rtnetlink: openRtnetlink(), sysctl: openSysctl(), nft: openNft(), enter: enterNetns };
  try {
    // Locked to the end: no agent starts meanwhile, and no second uninstallation.
    const journal = openJournal(join(config.stateDir, 'journal.db'), { clock, log });
    try {
      const dump = readHostDump(kernel.rtnetlink);
      const traces = { journal: journal.load(), evidence: readEvidence(dump, config.eniMarkMask) };
      const ofOthers = { uplinkIps: uplinkIpsOf(config.stateDir), routedIps: routedIpsOf(kernel.rtnetlink, dump) };
      await refuseLiveAttachments(config, { ...traces, ...ofOthers }, { clock, log });
      // First, and before the executables: no runtime may begin with a Pod that it cannot finish.
      await removeConfiguration(config.cniConfDir, sweep);
      await removeExecutables(config, sweep);
      await returnNics(kernel, traces, config.hostRoot, sweep);
      await removeKernelState(kernel, traces, sweep);
      const found = readFoundState(join(config.stateDir, FOUND_STATE_FILE), readBootId());
      await restoreSettings(kernel, found, sweep);
      await removeReservations(config, traces.journal.leases, log, sweep);
      await removeDevicePluginSockets(config.kubeletDir, sweep);
      await removeDelegations(config.hostRoot, sweep);
      // Evidence of what could not be removed stays for the next run.
      if (!sweep.hasFailed()) await removeState(config, sweep);
    } finally {
      journal.close();
    }
  } finally {
    kernel.rtnetlink.close();
  }
  conclude(sweep, log);
}

async function refuseLiveAttachments(
  config: UninstallConfig,
  { journal, ...kernel }: KernelTraces & Pick<AttachmentFacts, 'uplinkIps' | 'routedIps'>,
  { clock, log }: UninstallRuntime,
): Promise<void> {
  const live = findLiveAttachments({
    leases: journal.leases,
    ...kernel,
    sandboxes: needsRuntime(journal) ? await listSandboxes(config.criSockets, log) : undefined,
    isNetnsAbsent: netnsAbsenceIn(config.hostRoot),
    nowMs: clock.bootMs(),
  });
  if (live.length === 0) return;
  const names = describeLive(live);
  if (config.despitePods) return log.warn('Pods lose their network', { count: live.length, pods: names });
  throw new AgentError(
    'PODS_LIVE',
    `${live.length} attachments may be in use on this node: ${names}. Nothing was touched. Drain the node and run this again; with --despite-pods they lose their network at once, and their Pods stay Terminating until the node is rebooted`,
  );
}

/** Returns the addresses whose rules the node record of an agent with the role `uplinks` has; none without a record. */
function uplinkIpsOf(stateDir: string): ReadonlySet<string> {
  return new Set(findNodeRecord(stateDir)?.enis.flatMap(({ podIps = [] }) => podIps));
}

/**
 * Returns the addresses that another program, such as cilium-cni, routes to a link in the table main; without those of
 * the node's links, for which the kernel has such routes.
 */
function routedIpsOf(rtnetlink: Kernel['rtnetlink'], { routes }: HostDump): ReadonlySet<string> {
  const own = new Set(rtnetlink.address.list().map(ownAddress));
  const ofOthers = routes.filter(
    ({ table, protocol, oif, gateway }) =>
      table === TABLE_MAIN && protocol !== RTPROT_TKE_ENI && oif !== undefined && gateway === undefined,
  );
  const routed = ofOthers.flatMap(({ dst }) => /^(.+)\/(?:32|128)$/.exec(dst ?? '')?.[1] ?? []);
  return new Set(routed.filter((ip) => !own.has(ip)));
}

function needsRuntime({ leases }: JournalContent): boolean {
  return leases.length > 0;
}

function netnsAbsenceIn(hostRoot: string): (lease: { readonly netns: string }) => boolean {
  const sandboxes = openSandboxes(openNamespaces(hostRoot));
  return ({ netns }) => sandboxes.isAbsent(netns);
}

/** Returns undefined when no runtime answers: then only namespaces show what is in use. */
async function listSandboxes(sockets: readonly string[], log: Logger): Promise<readonly CriSandbox[] | undefined> {
  if (sockets.length === 0) return undefined;
  const view = openCriView(sockets);
  try {
    return await view.list(timeoutSignal(LIST_TIMEOUT_MS));
  } catch (error) {
    log.warn('container runtime not reachable, every namespace that is there counts as in use', { error });
    return undefined;
  } finally {
    view.close();
  }
}

function conclude(sweep: Sweep, log: Logger): void {
  const { removed, left, failed } = sweep.report();
  if (failed.length > 0) {
    throw new AgentError(
      'UNINSTALL',
      `not everything could be removed; fix this and run it again: ${failed.join('; ')}`,
    );
  }
  log.info('uninstalled: nothing of ours is left on this node', { removed, left });
}
