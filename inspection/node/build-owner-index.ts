import { familyOf, isHostPrefix, withoutHostLength } from '../../dataplane/ip-prefix.ts';
import { OUR_PRIORITIES, PRIORITY, RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import type { AddressMessage } from '../../netlink/address-message.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { NeighMessage } from '../../netlink/neigh-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';
import { IFF_LOOPBACK } from '../../netlink/uapi/if-link.ts';
import { NUD_NOARP } from '../../netlink/uapi/neighbour.ts';
import {
  RT_SCOPE_LINK,
  RT_TABLE_LOCAL,
  RTPROT_BOOT,
  RTPROT_DHCP,
  RTPROT_KERNEL,
  RTPROT_RA,
  RTPROT_REDIRECT,
  RTPROT_STATIC,
} from '../../netlink/uapi/rtnetlink.ts';
import { type EniFacts, findEnis } from './find-enis.ts';
import { keyOfLink } from './find-pod-links.ts';
import { joinPods, type NodePod } from './join-pods.ts';
import type { NodeFacts } from './node-facts.ts';

/** The owner of a kernel object. */
export type Owner =
  | { readonly kind: 'eni'; readonly eniId?: string; readonly ifname: string | undefined; readonly table: number }
  /** Namespace and name are empty where they are not known: without a journal, or for a veth without a lease. */
  | {
      readonly kind: 'pod';
      readonly key: string;
      readonly namespace: string;
      readonly name: string;
      readonly ips: readonly string[];
    }
  /** An object of tke-eni that belongs to no single ENI or Pod. */
  | { readonly kind: 'node' }
  | { readonly kind: 'kernel' }
  /** `who`: a hint about the owner: a routing protocol or an interface. */
  | { readonly kind: 'foreign'; readonly who?: string };

/** Look-up of the owners of objects in the host's namespace. */
export type OwnerIndex = {
  readonly enis: readonly EniFacts[];
  ownerOfRoute(route: RouteMessage): Owner;
  ownerOfRule(rule: RuleMessage): Owner;
  ownerOfLink(link: LinkMessage): Owner;
  ownerOfAddress(address: AddressMessage): Owner;
  ownerOfNeigh(neigh: NeighMessage): Owner;
  /** Returns the owner of the objects on an interface. */
  ownerOfIfindex(ifindex: number): Owner;
};

/** Programs by their route protocol number. @see rt_protos of iproute2 */
const PROTOCOL_NAMES: Readonly<Record<number, string>> = {
  0: 'ip or a script',
  [RTPROT_REDIRECT]: 'ICMP redirect',
  [RTPROT_BOOT]: 'ip or a script',
  [RTPROT_STATIC]: 'static: an administrator',
  [RTPROT_RA]: 'router advertisement',
  [RTPROT_DHCP]: 'dhcp',
  11: 'zebra',
  12: 'bird',
  80: 'Calico',
  186: 'bgp',
  188: 'ospf',
};

/**
 * Builds the index of owners: identified by the kernel's data (protocol, alias, link, table), named by the agent's
 * record.
 */
export function buildOwnerIndex(facts: NodeFacts): OwnerIndex {
  const enis = findEnis(facts.host, facts.agent);
  const links = new Map(facts.host.links.map((link) => [link.ifindex, link]));
  const byKey = new Map(joinPods(facts).map((pod) => [pod.pod.key, podOwner(pod)]));
  const byIp = new Map([...byKey.values()].flatMap((owner) => owner.ips.map((ip) => [ip, owner] as const)));
  const byVeth = new Map(
    facts.pods.flatMap(({ key, hostIfindex }) => (hostIfindex === undefined ? [] : [[hostIfindex, key] as const])),
  );
  const eniOf = (table: number): Owner => eniOwner(enis.find((eni) => eni.table === table) ?? { table });
  const podOfPrefix = (prefix: string | undefined): Owner | undefined => byIp.get(hostOf(prefix) ?? '');

  const ownerOfIfindex = (ifindex: number): Owner => {
    const link = links.get(ifindex);
    return link === undefined ? { kind: 'foreign' } : ownerOfLink(link);
  };
  const ownerOfLink = (link: LinkMessage): Owner => {
    const key = byVeth.get(link.ifindex) ?? keyOfLink(link);
    if (key !== undefined) return byKey.get(key) ?? { kind: 'pod', key, namespace: '', name: '', ips: [] };
    const eni = enis.find(({ ifindex }) => ifindex === link.ifindex);
    if (eni !== undefined) return eniOwner(eni);
    return (link.flags & IFF_LOOPBACK) === 0 ? { kind: 'foreign', who: link.ifname } : { kind: 'kernel' };
  };
  return {
    enis,
    ownerOfIfindex,
    ownerOfLink,
    ownerOfRoute: (route) => {
      if (route.protocol !== RTPROT_TKE_ENI) return othersRoute(route);
      if (enis.some(({ table }) => table === route.table)) return eniOf(route.table);
      const owner = podOfPrefix(route.dst) ?? (route.oif === undefined ? undefined : ownerOfIfindex(route.oif));
      return owner?.kind === 'pod' ? owner : { kind: 'node' };
    },
    ownerOfRule: (rule) => {
      if (!isOurRule(rule)) return othersRule(rule);
      if (rule.priority === PRIORITY.fromEniPrimary) return eniOf(rule.table);
      const pod = podOfPrefix(rule.src) ?? podOfPrefix(rule.dst);
      return (
        pod ?? (rule.priority === PRIORITY.eniMark && rule.fwmark !== undefined ? eniOf(rule.table) : { kind: 'node' })
      );
    },
    ownerOfAddress: (address) => {
      const owner = ownerOfIfindex(address.ifindex);
      const isLinkLocal = address.scope === RT_SCOPE_LINK && familyOf(address.address) === 6;
      return isLinkLocal ? { kind: 'kernel' } : owner;
    },
    ownerOfNeigh: (neigh) => (neigh.state === NUD_NOARP ? { kind: 'kernel' } : ownerOfIfindex(neigh.ifindex)),
  };
}

/** Formats an owner as in headings: 'ENI eni-1 (eth1, table 4003)', 'Pod default/web-0', 'Foreign (dhcp)'. */
export function ownerText(owner: Owner): string {
  switch (owner.kind) {
    case 'eni': {
      const details = [owner.ifname, `table ${owner.table}`].filter((text) => text !== undefined).join(', ');
      return owner.eniId === undefined ? `ENI (${details})` : `ENI ${owner.eniId} (${details})`;
    }
    case 'pod': {
      const name = owner.name === '' ? owner.key : `${owner.namespace}/${owner.name}`;
      return owner.ips.length === 0 ? `Pod ${name}` : `Pod ${name} (${owner.ips.join(', ')})`;
    }
    case 'node':
      return 'Node (tke-eni)';
    case 'kernel':
      return 'Kernel';
    case 'foreign':
      return owner.who === undefined ? 'Foreign' : `Foreign (${owner.who})`;
  }
}

/**
 * Reports whether a rule belongs to tke-eni: by its protocol, or, on kernels before 4.17, which store none, by its
 * priority.
 */
export function isOurRule({ protocol, priority }: Pick<RuleMessage, 'protocol' | 'priority'>): boolean {
  return protocol === RTPROT_TKE_ENI || (protocol === undefined && OUR_PRIORITIES.includes(priority));
}

type PodOwner = Owner & { readonly kind: 'pod' };

function podOwner({ pod, lease, title, ips }: NodePod): PodOwner {
  const namespace = lease?.podNamespace ?? '';
  // With the interface if it is not eth0: a Pod may have several.
  const name = (lease?.podName ?? '') === '' ? '' : title.slice(namespace.length + 1);
  return { kind: 'pod', key: pod.key, namespace, name, ips };
}

function eniOwner(eni: Pick<EniFacts, 'table'> & Partial<EniFacts>): Owner {
  const { eniId, ifname, table } = eni;
  return { kind: 'eni', ifname, table, ...(eniId === undefined ? {} : { eniId }) };
}

function othersRoute({ protocol, table }: RouteMessage): Owner {
  if (table === RT_TABLE_LOCAL || protocol === RTPROT_KERNEL) return { kind: 'kernel' };
  return { kind: 'foreign', who: PROTOCOL_NAMES[protocol] ?? `protocol ${protocol}` };
}

function othersRule({ protocol, priority }: RuleMessage): Owner {
  const isDefault = priority === 0 || priority === 32766 || priority === 32767;
  if (protocol === RTPROT_KERNEL || (protocol === undefined && isDefault)) return { kind: 'kernel' };
  return protocol === undefined
    ? { kind: 'foreign' }
    : { kind: 'foreign', who: PROTOCOL_NAMES[protocol] ?? `protocol ${protocol}` };
}

/** Returns the address of a host prefix; undefined for a shorter prefix. */
function hostOf(prefix: string | undefined): string | undefined {
  return isHostPrefix(prefix) ? withoutHostLength(prefix) : undefined;
}
