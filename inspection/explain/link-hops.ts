import { familyOf } from '../../dataplane/ip-prefix.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { IFF_NOARP, IFF_UP } from '../../netlink/uapi/if-link.ts';
import { NUD_FAILED } from '../../netlink/uapi/neighbour.ts';
import { finding } from '../catalogue/catalogue.ts';
import { eniId, linkId, podId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import { findLinkLocalFault } from '../faults/find-link-local-fault.ts';
import { findLinkObstacles } from '../faults/find-link-obstacles.ts';
import { findFullTable, findStaticNeighbour } from '../faults/find-neighbour-fault.ts';
import { findSolicitFault } from '../faults/find-setting-fault.ts';
import { ifKnown } from '../node/known.ts';
import { isOnBridge } from './bridge-hop.ts';
import { type ExplainContext, type ExplainedEni, type ExplainedPod, linkName } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import {
  eniDetached,
  eniDown,
  eniWithoutAddress,
  vethDown,
  vethMacChanged,
  vethMissing,
} from './find-routing-fault.ts';
import { ingressLink } from './gr-hops.ts';
import { hopOf, mostSevere, unknownHop } from './hop.ts';

const REPAIR = 'tke-eni repair';

/**
 * Checks the host end of the Pod's veth pair: it exists, is up, has the MAC that the Pod sends to, and is in the link
 * group of the Pod's ENI.
 * @param isRoutedByGroup whether the link group selects the route: for packets from the Pod out of the node
 */
export function vethHop(context: ExplainContext, view: ExplainedPod, isRoutedByGroup: boolean): Hop {
  const { veth, lease, pod } = view;
  const element = linkId(pod.hostIfindex ?? 0);
  if (!view.isOurs && veth === undefined) {
    const fields = { kind: 'veth' as const, element, title: 'host interface of another plugin' };
    return unknownHop(
      fields,
      'the Pod was wired by another main plugin, which asked us for an address only',
      'look at its links with `ip link`',
    );
  }
  if (veth === undefined) {
    return hopOf({ kind: 'veth', element, title: `host interface ${lease?.hostVeth?.name ?? ''}` }, vethMissing(view));
  }
  const state = (veth.flags & IFF_UP) === 0 ? 'down' : veth.carrier === 0 ? 'up, no carrier' : 'up';
  const details = [
    `${state}, mtu ${veth.mtu}, mac ${veth.address ?? 'none'}, link group ${veth.group}${view.eni === undefined ? '' : ` (${view.eni.title} has ${view.eni.table})`}`,
    pairText(view),
    view.gr?.wiring === 'routed'
      ? 'NodePort requests that kube-proxy masquerades come from the address of the node: the link has none'
      : undefined,
  ];
  const fault = mostSevere(
    (veth.flags & IFF_UP) === 0 ? vethDown(view) : undefined,
    ...(view.isOurs
      ? [vethMacChanged(view), arpFault(veth), ...(isOnBridge(view) ? [] : [masterFault(context, veth)])]
      : []),
    peerFault(view),
    ...findLinkObstacles(
      context.facts.host,
      {
        link: veth,
        title: `${veth.ifname} of ${view.title}`,
        subjects: [element, podId(pod.key)],
        prefix: '',
      },
      context.pods,
    ),
    groupFault(context, view, isRoutedByGroup),
    mtuFault(view),
  );
  return hopOf({ kind: 'veth', element, title: `host interface ${veth.ifname}`, details }, fault);
}

/** Reports that the kernel asks for no neighbour on a link, and answers none. */
function arpFault({ flags, ifname, ifindex }: LinkMessage): Finding | undefined {
  if ((flags & IFF_NOARP) === 0) return undefined;
  return finding('link-noarp', {
    what: `${ifname} has ARP turned off: the node finds no neighbour by it`,
    fix: [REPAIR, `ip link set ${ifname} arp on`],
    subjects: [linkId(ifindex)],
  });
}

/** Reports that another link takes the packets of a link. */
function masterFault({ facts }: ExplainContext, { master = 0, ifname, ifindex }: LinkMessage): Finding | undefined {
  if (master === 0) return undefined;
  const by = facts.host.links.find((link) => link.ifindex === master);
  return finding('link-enslaved', {
    what: `${ifname} is in ${by?.kind ?? 'the link'} ${linkName(facts.host.links, master)}, which takes what comes in by it`,
    fix: [REPAIR, `ip link set ${ifname} nomaster`],
    subjects: [linkId(ifindex), linkId(master)],
  });
}

function pairText(view: ExplainedPod): string | undefined {
  if (view.hasOwnEni) return 'beside the ENI that the Pod has as its own: for this node, its Pods, probes and Services';
  return view.podLink === undefined
    ? undefined
    : `other end: ${view.ifName} in the Pod, ifindex ${view.podLink.ifindex}`;
}

function peerFault(view: ExplainedPod): Finding | undefined {
  const { veth, podLink, pod, hasOwnEni } = view;
  const isPair = hasOwnEni || podLink === undefined || veth?.link === undefined || veth.link === podLink.ifindex;
  if (isPair) return undefined;
  return finding('veth-missing', {
    what: `${veth.ifname} is not the other end of ${view.ifName} in ${view.title}: it leads to ifindex ${veth.link}`,
    fix: ['delete the Pod'],
    subjects: [linkId(veth.ifindex), podId(pod.key)],
  });
}

function groupFault({ ruleMode }: ExplainContext, view: ExplainedPod, isRoutedByGroup: boolean): Finding | undefined {
  const { veth, eni, pod, title, isOurs } = view;
  if (!isOurs || veth === undefined || eni === undefined || veth.group === eni.table) return undefined;
  return finding('link-group-wrong', {
    what: `${veth.ifname} of ${title} is in link group ${veth.group}, not in ${eni.table} of ${eni.title}`,
    fix: [REPAIR, `ip link set ${veth.ifname} group ${eni.table}`],
    subjects: [linkId(veth.ifindex), podId(pod.key)],
    // In per-pod mode rules by source select the route. The group is then for IPv6 spoofing checks and NodePort answers
    // only.
    ...(ruleMode === 'per-pod' || !isRoutedByGroup ? { severity: 'warning' as const } : {}),
  });
}

function mtuFault({ veth, podLink, lease, ifName, title, isOurs, hasOwnEni }: ExplainedPod): Finding | undefined {
  if (veth === undefined || hasOwnEni) return undefined;
  const recorded = isOurs ? lease?.mtu : undefined;
  const ends = [
    `${veth.ifname} ${veth.mtu}`,
    ...(podLink === undefined ? [] : [`${ifName} in the Pod ${podLink.mtu}`]),
    ...(recorded === undefined ? [] : [`recorded ${recorded}`]),
  ];
  const sizes = new Set([veth.mtu, podLink?.mtu ?? veth.mtu, recorded ?? veth.mtu]);
  if (sizes.size === 1) return undefined;
  return finding('mtu-mismatch', {
    what: `the MTUs of ${title} differ: ${ends.join(', ')}`,
    fix: [REPAIR, `ip link set ${veth.ifname} mtu ${recorded ?? podLink?.mtu}`],
    subjects: [linkId(veth.ifindex)],
  });
}

/** Checks the node's neighbour entry for the Pod: learned by ARP or ND, which the Pod answers itself. */
export function podNeighHop(context: ExplainContext, view: ExplainedPod, ip: string): Hop {
  const { facts } = context;
  const link = ingressLink(context, view);
  const ifindex = link?.ifindex;
  const neigh = facts.host.neighs.find((each) => each.ifindex === ifindex && each.dst === ip);
  const expected = view.hasOwnEni ? sideMac(view) : (view.podLink?.address ?? view.lease?.podMac);
  const element = `neigh:${ifindex ?? 0}:${ip}`;
  const isFailed = neigh !== undefined && (neigh.state & NUD_FAILED) !== 0;
  const fields = {
    kind: 'neigh' as const,
    element,
    title:
      neigh?.lladdr === undefined
        ? `neighbour ${ip} is asked for when a packet comes`
        : `neighbour ${ip} is ${neigh.lladdr}`,
    details: [
      expected === undefined ? undefined : `${view.hasOwnEni ? 'its link' : view.ifName} in the Pod: ${expected}`,
    ],
  };
  const ifname = link?.ifname ?? '';
  const fix = [`ip neigh del ${ip} dev ${ifname}`];
  const host = { ip, ifindex: ifindex ?? 0, ifname, title: view.title, mac: expected };
  const fault = mostSevere(
    expected === undefined ? undefined : findStaticNeighbour(facts.host, host),
    findSolicitFault(facts.host, ifname, familyOf(ip)),
    view.isOurs && familyOf(ip) === 6 ? findLinkLocalFault(facts.host, link) : undefined,
    findFullTable(facts.host, host),
  );
  if (fault !== undefined) return hopOf(fields, fault);
  if (neigh?.lladdr !== undefined && expected !== undefined && neigh.lladdr !== expected) {
    const what = `the node sends to ${neigh.lladdr} for ${ip}; ${view.title} has ${expected}`;
    return hopOf(
      fields,
      finding('neigh-wrong-mac', { what, fix, subjects: [element], isOurs: false, severity: 'warning' }),
    );
  }
  if (!isFailed) return hopOf(fields);
  const what = `the Pod did not answer the last question for ${ip}`;
  return hopOf(
    fields,
    finding('neigh-missing', { what, fix, subjects: [element], severity: 'warning', isOurs: false }),
  );
}

/** Returns the MAC of the Pod's end of the veth pair that a Pod with its own ENI has in addition. */
function sideMac({ veth, pod }: ExplainedPod): string | undefined {
  return ifKnown(pod.inside)?.links.find(({ ifindex }) => ifindex === veth?.link)?.address;
}

/**
 * Checks the ENI: it is on the node, up, with a carrier, with its MAC and its own address, and its MTU suffices for the
 * Pod.
 */
export function eniHop(context: ExplainContext, eni: ExplainedEni, family: 4 | 6, view: ExplainedPod | undefined): Hop {
  const { link } = eni;
  const fields = {
    kind: 'eni' as const,
    element: eniId(eni.eniId ?? String(eni.table)),
    title: eni.eniId === undefined ? eni.title : `ENI ${eni.title}`,
  };
  if (link === undefined) return hopOf(fields, eniDetached(eni));
  const isUp = (link.flags & IFF_UP) !== 0;
  const state = !isUp ? 'down' : link.carrier === 0 ? 'up, no carrier' : 'up';
  const present = eni.addresses.filter((ip) => !eni.missing.includes(ip));
  const details = [
    `${link.ifname}: ${state}, mtu ${link.mtu}, mac ${link.address ?? 'none'}, table ${eni.table}`,
    `own addresses: ${present.length === 0 ? 'none' : present.join(', ')}`,
  ];
  const fault = mostSevere(
    isUp ? undefined : eniDown(eni),
    isUp && link.carrier === 0 ? noCarrier(eni) : undefined,
    arpFault(link),
    masterFault(context, link),
    eni.missing.some((ip) => familyOf(ip) === family) ? eniWithoutAddress(eni) : undefined,
    macFault(eni),
    ...findLinkObstacles(
      context.facts.host,
      {
        link,
        title: link.ifname,
        subjects: [linkId(link.ifindex), fields.element],
        prefix: '',
      },
      context.pods,
    ),
    view === undefined ? undefined : eniMtuFault(eni, view),
  );
  return hopOf({ ...fields, details }, fault);
}

function noCarrier(eni: ExplainedEni): Finding {
  return finding('eni-no-carrier', {
    what: `${eni.title} is up and has no carrier`,
    fix: ['look at the ENI in the console; detach and attach it if it stays so'],
    subjects: [eniId(eni.eniId ?? String(eni.table)), linkId(eni.link?.ifindex ?? 0)],
  });
}

function macFault(eni: ExplainedEni): Finding | undefined {
  if (eni.mac === undefined || eni.link?.address === undefined || eni.mac === eni.link.address) return undefined;
  return finding('eni-mac-changed', {
    what: `${eni.link.ifname} has MAC ${eni.link.address}; ${eni.eniId ?? 'the ENI'} has ${eni.mac}`,
    fix: [REPAIR, `ip link set ${eni.link.ifname} address ${eni.mac}`],
    subjects: [eniId(eni.eniId ?? String(eni.table))],
  });
}

function eniMtuFault(eni: ExplainedEni, view: ExplainedPod): Finding | undefined {
  const podMtu = view.podLink?.mtu ?? view.lease?.mtu ?? view.veth?.mtu;
  const { link } = eni;
  if (link === undefined || podMtu === undefined || podMtu <= link.mtu) return undefined;
  return finding('mtu-mismatch', {
    what: `${view.title} sends packets of up to ${podMtu} bytes, ${eni.title} takes ${link.mtu}`,
    fix: [...(eni.network === undefined ? [] : [REPAIR]), `ip link set ${link.ifname} mtu ${podMtu}`],
    subjects: [linkId(link.ifindex)],
  });
}

/** Checks the node's neighbour entry for the VPC's gateway on the ENI. */
export function gatewayHop({ facts }: ExplainContext, eni: ExplainedEni, gateway: string): Hop {
  const neigh = facts.host.neighs.find(({ ifindex, dst }) => ifindex === eni.ifindex && dst === gateway);
  const recorded = eni.network?.addresses.find(({ ip }) => familyOf(ip) === familyOf(gateway))?.gateway;
  const fields = {
    kind: 'neigh' as const,
    element: `neigh:${eni.ifindex ?? 0}:${gateway}`,
    title:
      neigh?.lladdr === undefined
        ? `gateway ${gateway} is asked for when a packet goes`
        : `gateway ${gateway} is ${neigh.lladdr}`,
    details: [recorded === undefined ? undefined : `recorded gateway: ${recorded}`],
  };
  const ifname = eni.ifname ?? '';
  const host = { ip: gateway, ifindex: eni.ifindex ?? 0, ifname, title: `the gateway of ${eni.title}`, mac: undefined };
  const fault = mostSevere(
    findStaticNeighbour(facts.host, host),
    findSolicitFault(facts.host, ifname, familyOf(gateway)),
    familyOf(gateway) === 6 ? findLinkLocalFault(facts.host, eni.link) : undefined,
    findFullTable(facts.host, host),
  );
  if (fault !== undefined) return hopOf(fields, fault);
  if (neigh === undefined || (neigh.state & NUD_FAILED) === 0) return hopOf(fields);
  const what = `${gateway} did not answer on ${eni.title}`;
  const fix = ['look at the ENI and its subnet in the console', `arping -I ${eni.ifname} ${gateway}`];
  return hopOf(
    fields,
    finding('neigh-missing', { what, fix, subjects: [fields.element], severity: 'warning', isOurs: false }),
  );
}
