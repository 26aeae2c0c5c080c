import { familyOf } from '../../dataplane/ip-prefix.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { NUD_FAILED } from '../../netlink/uapi/neighbour.ts';
import { type FindingId, finding } from '../catalogue/catalogue.ts';
import { eniId, linkId, podId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import { findLinkLocalFault } from '../faults/find-link-local-fault.ts';
import { findLinkObstacles } from '../faults/find-link-obstacles.ts';
import { findFullTable, findStaticNeighbour } from '../faults/find-neighbour-fault.ts';
import { findSolicitFault } from '../faults/find-setting-fault.ts';
import { eniIdOf } from '../model/build-names.ts';
import type { ModelEni, ModelPod } from '../model/node-model.ts';
import { ifKnown } from '../node/known.ts';
import type { ExplainContext } from './explain-context.ts';
import type { Hop } from './explanation.ts';
import { ingressLink } from './gr-hops.ts';
import { hopOf, mostSevere, unknownHop } from './hop.ts';

/**
 * Checks the host end of the Pod's veth pair: it exists, is up, has the MAC that the Pod sends to, and is in the link
 * group of the Pod's ENI.
 * @param isRoutedByGroup whether the link group selects the route: for packets from the Pod out of the node
 */
export function vethHop(context: ExplainContext, view: ModelPod, isRoutedByGroup: boolean): Hop {
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
    const found = context.assessment.about(podId(pod.key), ['veth-missing', 'lease-without-sandbox']);
    return hopOf(
      { kind: 'veth', element, title: `host interface ${lease?.hostVeth?.name ?? ''}` },
      found ?? noVeth(view),
    );
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
    linkFault(context, veth, VETH_FAULTS, view),
    groupFault(context, view, isRoutedByGroup),
    peerFault(view),
    ...findLinkObstacles(
      context.facts.host,
      {
        link: veth,
        title: `${veth.ifname} of ${view.name}`,
        subjects: [element, podId(pod.key)],
        prefix: '',
      },
      context.pods,
    ),
  );
  return hopOf({ kind: 'veth', element, title: `host interface ${veth.ifname}`, details }, fault);
}

const VETH_FAULTS: readonly FindingId[] = [
  'veth-down',
  'veth-mac-changed',
  'link-noarp',
  'link-enslaved',
  'mtu-mismatch',
];
const ENI_FAULTS: readonly FindingId[] = [
  'eni-down',
  'eni-no-carrier',
  'eni-mac-changed',
  'eni-without-address',
  'link-noarp',
  'link-enslaved',
  'mtu-mismatch',
];

/** What the assessment says of a link that stops packets, or packets of this Pod. A link that no plan has may be down too. */
function linkFault(
  { assessment }: ExplainContext,
  { ifindex, ifname, flags }: LinkMessage,
  ids: readonly FindingId[],
  view: ModelPod | undefined,
  family?: 4 | 6,
): Finding | undefined {
  const found = assessment.about(linkId(ifindex), ids, family, view?.pod.key);
  if (found !== undefined || (flags & IFF_UP) !== 0) return found;
  return assessment.ofHost({ kind: 'set-link', ifindex, ifname, change: { up: true }, before: { up: false } });
}

function noVeth({ pod, title, lease }: ModelPod): Finding {
  return finding('veth-missing', {
    what: `the host interface ${lease?.hostVeth?.name ?? ''} of ${title} is not there`,
    fix: ['delete the Pod: a running container gets no new interface'],
    subjects: [podId(pod.key)],
  });
}

/** In per-pod mode rules by source select the route. The group is then for IPv6 spoofing checks and NodePort answers only. */
function groupFault(
  { ruleMode, assessment }: ExplainContext,
  { veth }: ModelPod,
  isRoutedByGroup: boolean,
): Finding | undefined {
  const found = assessment.about(linkId(veth?.ifindex ?? 0), ['link-group-wrong']);
  if (found === undefined) return undefined;
  return { ...found, ...(ruleMode === 'per-pod' || !isRoutedByGroup ? { severity: 'warning' } : {}) };
}

function pairText(view: ModelPod): string | undefined {
  if (view.hasOwnEni) return 'beside the ENI that the Pod has as its own: for this node, its Pods, probes and Services';
  return view.podLink === undefined
    ? undefined
    : `other end: ${view.ifName} in the Pod, ifindex ${view.podLink.ifindex}`;
}

function peerFault(view: ModelPod): Finding | undefined {
  const { veth, podLink, pod, hasOwnEni } = view;
  const isPair = hasOwnEni || podLink === undefined || veth?.link === undefined || veth.link === podLink.ifindex;
  if (isPair) return undefined;
  return finding('veth-missing', {
    what: `${veth.ifname} is not the other end of ${view.ifName} in ${view.title}: it leads to ifindex ${veth.link}`,
    fix: ['delete the Pod'],
    subjects: [linkId(veth.ifindex), podId(pod.key)],
  });
}

/** Checks the node's neighbour entry for the Pod: learned by ARP or ND, which the Pod answers itself. */
export function podNeighHop(context: ExplainContext, view: ModelPod, ip: string): Hop {
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
  const host = { ip, ifindex: ifindex ?? 0, ifname, title: view.name, mac: expected };
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
function sideMac({ veth, pod }: ModelPod): string | undefined {
  return ifKnown(pod.inside)?.links.find(({ ifindex }) => ifindex === veth?.link)?.address;
}

/**
 * Checks the ENI: it is on the node, up, with a carrier, with its MAC and its own address, and its MTU suffices for the
 * Pod.
 */
export function eniHop(context: ExplainContext, eni: ModelEni, family: 4 | 6, view: ModelPod | undefined): Hop {
  const { link } = eni;
  const fields = {
    kind: 'eni' as const,
    element: eniId(eniIdOf(eni)),
    title: eni.eniId === undefined ? eni.title : `ENI ${eni.title}`,
  };
  if (link === undefined) {
    const found = context.assessment.about(fields.element, ['eni-detached']);
    if (found !== undefined) return hopOf(fields, found);
    return unknownHop(fields, 'no link is known to be its', 'look at it in the console and at `kubectl describe nec`');
  }
  const isUp = (link.flags & IFF_UP) !== 0;
  const state = !isUp ? 'down' : link.carrier === 0 ? 'up, no carrier' : 'up';
  const present = eni.addresses.filter((ip) => !eni.missing.includes(ip));
  const details = [
    `${link.ifname}: ${state}, mtu ${link.mtu}, mac ${link.address ?? 'none'}, table ${eni.table}`,
    `own addresses: ${present.length === 0 ? 'none' : present.join(', ')}`,
  ];
  const fault = mostSevere(
    linkFault(context, link, ENI_FAULTS, view, family),
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
  );
  return hopOf({ ...fields, details }, fault);
}

/** Checks the node's neighbour entry for the VPC's gateway on the ENI. */
export function gatewayHop({ facts }: ExplainContext, eni: ModelEni, gateway: string): Hop {
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
  const host = { ip: gateway, ifindex: eni.ifindex ?? 0, ifname, title: `the gateway of ${eni.name}`, mac: undefined };
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
