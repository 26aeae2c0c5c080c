import { hostVethFallbackName, hostVethName, sideName } from '../../dataplane/host-veth-name.ts';
import { DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import type { CriSandbox } from '../cri/sandbox-view.ts';
import { isUnknownOwner, type LeaseKey, leaseKey, unknownOwner } from '../journal/lease.ts';
import type { KernelEvidence, LinkEvidence, PeerEvidence, PodEnd, VethEvidence } from '../node/kernel-evidence.ts';

/** Everything that witnesses whose a host veth is. */
type Witnesses = {
  readonly kernel: KernelEvidence;
  /** The veths in the network namespaces. */
  readonly ends: readonly PodEnd[];
  readonly sandboxes: readonly CriSandbox[];
  /** Namespaces as the runtime names them, by sandbox id. */
  readonly netns: ReadonlyMap<string, string>;
  /** Addresses that the runtime reports, by sandbox id. */
  readonly sandboxIps: ReadonlyMap<string, readonly string[]>;
};

/** Whose the host veths are. */
type NamedVeths = {
  /** All veths of Pods. One whose owner is not found has the key of an unknown one: its addresses are held. */
  readonly veths: readonly VethEvidence[];
  /** What the Pod ends of veths without an alias show. */
  readonly peers: ReadonlyMap<LeaseKey, PeerEvidence>;
  readonly held: readonly { readonly link: string; readonly ips: readonly string[]; readonly why: string }[];
};

/**
 * Decides whose each host veth is. An alias of ours names the sandbox, unless the Pod's end is in the namespace of another.
 * Without an alias it is the one sandbox on which all that speak agree: the namespace of the Pod's end, the veth's name and the
 * addresses that the runtime reports. Where none speaks, or they disagree, the veth is held under a name of its own.
 */
export function nameVeths(witnesses: Witnesses): NamedVeths {
  const veths: VethEvidence[] = [];
  const peers = new Map<LeaseKey, PeerEvidence>();
  const held: NamedVeths['held'][number][] = [];
  const keys = new Set<LeaseKey>();
  const add = (link: LinkEvidence, end: PodEnd | undefined, ifName: string, found: Owner): void => {
    const isTaken = found.id !== undefined && keys.has(leaseKey({ containerId: found.id, ifName }));
    const why = isTaken ? `another link is that of ${found.id}` : found.why;
    const containerId = found.id === undefined || isTaken ? unknownOwner(link.name) : found.id;
    const key = leaseKey({ containerId, ifName });
    keys.add(key);
    veths.push({ ...link, containerId, ifName });
    if (end !== undefined && link.table !== DIRECT_LINK_GROUP)
      peers.set(key, { netns: end.netns, podMac: end.mac, ips: end.ips });
    if (why !== undefined) held.push({ link: link.name, ips: ipsOn(link, end), why });
  };
  const { kernel } = witnesses;
  for (const veth of kernel.veths) {
    const end = endOf(veth, witnesses);
    const inNetns = inNetnsOf(end, witnesses);
    const isKnown = !isUnknownOwner(veth.containerId);
    const isAgreed = inNetns.length === 0 || inNetns.some(({ id }) => id === veth.containerId);
    if (!isKnown) add(veth, end, veth.ifName, decideOwner(veth, end, veth.ifName, witnesses));
    else if (isAgreed) add(veth, undefined, veth.ifName, { id: veth.containerId });
    else
      add(veth, end, veth.ifName, { why: `its alias is of ${veth.containerId}, its Pod's end of ${idsOf(inNetns)}` });
  }
  for (const { isMarked, ...link } of kernel.unnamed ?? []) {
    const end = endOf(link, witnesses);
    const isOurs = isMarked || end?.hasGateway === true || end?.neighMacs.includes(link.mac) === true;
    const ifName = end === undefined || link.table === DIRECT_LINK_GROUP ? 'eth0' : end.ifName;
    if (isOurs) add(link, end, ifName, decideOwner(link, end, ifName, witnesses));
  }
  return { veths, peers, held };
}

type Owner = { readonly id?: string; readonly why?: string };

function decideOwner(link: LinkEvidence, end: PodEnd | undefined, ifName: string, witnesses: Witnesses): Owner {
  const { sandboxes, sandboxIps } = witnesses;
  const ips = ipsOn(link, end);
  const withIp = sandboxes.filter(({ id, state }) => {
    return state === 'ready' && sandboxIps.get(id)?.some((ip) => ips.includes(ip)) === true;
  });
  if (withIp.length > 1) return { why: `${idsOf(withIp)} have its address` };
  const claims = [
    inNetnsOf(end, witnesses),
    readyFirst(sandboxes.filter((sandbox) => namesOf(sandbox, ifName).includes(link.name))),
    withIp,
  ].filter((claim) => claim.length > 0);
  const [first = [], ...others] = claims;
  const agreed = first.filter((sandbox) => others.every((claim) => claim.includes(sandbox)));
  const [owner] = agreed;
  if (owner !== undefined && agreed.length === 1) return { id: owner.id };
  const claimants = [...new Set(claims.flat())];
  return { why: claimants.length === 0 ? 'no sandbox is known for it' : `it shows marks of ${idsOf(claimants)}` };
}

function namesOf({ id: containerId, podNamespace, podName }: CriSandbox, ifName: string): readonly string[] {
  const owner = { containerId, ifName, podNamespace, podName };
  return [hostVethName(owner), hostVethFallbackName(owner)];
}

/**
 * Finds the Pod's end of a veth. Indexes count from one in each namespace, but both ends name each other; of several the
 * neighbour entry with the veth's random MAC tells.
 */
function endOf({ ifindex, peerIfindex, mac, table }: LinkEvidence, { ends }: Witnesses): PodEnd | undefined {
  const both = ends.filter((end) => end.peerIfindex === ifindex && end.ifindex === (peerIfindex ?? end.ifindex));
  const sides = table === DIRECT_LINK_GROUP ? both.filter(({ ifName }) => ifName === sideName('eth0')) : [];
  return (
    both.find(({ neighMacs }) => neighMacs.includes(mac)) ??
    sides[0] ??
    both.find(({ hasGateway }) => hasGateway) ??
    both[0]
  );
}

function inNetnsOf(end: PodEnd | undefined, { sandboxes, netns }: Witnesses): readonly CriSandbox[] {
  return end === undefined ? [] : readyFirst(sandboxes.filter(({ id }) => netns.get(id) === end.netns));
}

/** Runtimes list the ended sandboxes of a Pod beside the living one. */
function readyFirst(sandboxes: readonly CriSandbox[]): readonly CriSandbox[] {
  const ready = sandboxes.filter(({ state }) => state === 'ready');
  return ready.length > 0 ? ready : sandboxes;
}

function ipsOn({ ips }: LinkEvidence, end: PodEnd | undefined): readonly string[] {
  return [...new Set([...ips, ...(end?.ips ?? [])])];
}

function idsOf(sandboxes: readonly CriSandbox[]): string {
  return sandboxes.map(({ id }) => id).join(' and ');
}
