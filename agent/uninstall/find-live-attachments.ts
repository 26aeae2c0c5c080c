import { decideCollect } from '../attachment/decide-collect.ts';
import type { CriSandbox } from '../cri/sandbox-view.ts';
import { type Lease, leaseKey, unknownOwner } from '../journal/lease.ts';
import type { KernelEvidence } from '../node/kernel-evidence.ts';

/** An attachment that may be in use. */
type LiveAttachment = {
  readonly containerId: string;
  readonly ifName: string;
  /** `namespace/name`, or '' when not known. */
  readonly pod: string;
  readonly ips: readonly string[];
};

/** What is known of the attachments of a node. */
export type AttachmentFacts = {
  readonly leases: readonly Lease[];
  readonly evidence: Pick<KernelEvidence, 'veths' | 'unnamed' | 'ipams'>;
  /** Addresses that had their rules with the role `uplinks`, whether a Pod had them or not. */
  readonly uplinkIps?: ReadonlySet<string>;
  /** Addresses with a route of another program to a link of this node. */
  readonly routedIps?: ReadonlySet<string>;
  /** Undefined when no runtime answers. */
  readonly sandboxes: readonly CriSandbox[] | undefined;
  readonly isNetnsAbsent: (lease: Lease) => boolean;
  /** Milliseconds since boot, as in leases. */
  readonly nowMs: number;
};

/**
 * Finds the attachments that may be in use: all but those whose sandbox was surely removed. A stopped sandbox counts
 * too while its namespace exists: the runtime still has to end it, and needs our plugin for it.
 */
export function findLiveAttachments(facts: AttachmentFacts): readonly LiveAttachment[] {
  const { leases, evidence, uplinkIps = new Set(), routedIps = new Set() } = facts;
  const orphans = new Set(orphanKeys(facts));
  const known = new Set(leases.map(leaseKey));
  const leasedIps = new Set(leases.flatMap(({ addresses }) => addresses.map(({ ip }) => ip)));
  const ofLeases = leases
    .filter((one) => !orphans.has(leaseKey(one)))
    .map(({ containerId, ifName, podNamespace, podName, addresses }) => ({
      ...{ containerId, ifName },
      pod: podName === '' ? '' : `${podNamespace}/${podName}`,
      ips: addresses.map(({ ip }) => ip),
    }));
  // Without a lease neither namespace nor Pod is known: the link itself, or the rules, show that a Pod was wired.
  const ofLinks = evidence.veths
    .filter((one) => !known.has(leaseKey(one)))
    .map(({ containerId, ifName, ips }) => ({ containerId, ifName, pod: '', ips }));
  const ofUnnamed = (evidence.unnamed ?? [])
    .filter(({ ips }) => ips.some((ip) => !leasedIps.has(ip)))
    .map(({ name, ips }) => ({ containerId: unknownOwner(name), ifName: 'eth0', pod: '', ips }));
  const ofRules = evidence.ipams
    .filter(({ ip }) => !leasedIps.has(ip) && (!uplinkIps.has(ip) || routedIps.has(ip)))
    .map(({ ip }) => ({ containerId: '', ifName: '', pod: '', ips: [ip] }));
  return [...ofLeases, ...ofLinks, ...ofUnnamed, ...ofRules];
}

function orphanKeys({ leases, sandboxes, isNetnsAbsent, nowMs }: AttachmentFacts): readonly string[] {
  if (sandboxes !== undefined) return decideCollect(leases, sandboxes, nowMs, (lease) => !isNetnsAbsent(lease)).orphans;
  return leases.filter(isNetnsAbsent).map(leaseKey);
}

/** Names attachments for a message, the first of them in full. */
export function describeLive(live: readonly LiveAttachment[]): string {
  const shown = live.slice(0, MAX_NAMED).map(({ containerId, ifName, pod, ips }) => {
    const who = pod !== '' ? pod : containerId === '' ? 'a Pod of another plugin' : `sandbox ${containerId}/${ifName}`;
    return ips.length === 0 ? who : `${who} (${ips.join(', ')})`;
  });
  const rest = live.length - shown.length;
  return [...shown, ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ');
}

const MAX_NAMED = 20;
