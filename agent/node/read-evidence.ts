import { slotOfMark } from '../../dataplane/eni-mark.ts';
import { permanentMac } from '../../dataplane/find-nic.ts';
import { isHostVethName, parseHostVethAlias } from '../../dataplane/host-veth-name.ts';
import { isHostPrefix } from '../../dataplane/ip-prefix.ts';
import {
  DIRECT_LINK_GROUP,
  isEniTable,
  PRIORITY,
  RTPROT_TKE_ENI,
  TABLE_MAIN,
  TABLE_POD_ROUTES,
  UNREACHABLE_METRIC,
} from '../../dataplane/numbers.ts';
import type { LinkMessage } from '../../netlink/link-message.ts';
import type { RouteMessage } from '../../netlink/route-message.ts';
import type { RuleMessage } from '../../netlink/rule-message.ts';
import { RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import type { EniEvidence, KernelEvidence, LinkEvidence, UnnamedVeth, VethEvidence } from './kernel-evidence.ts';

/** Dumps of the host's namespace, both families. */
export type HostDump = {
  readonly links: readonly LinkMessage[];
  readonly routes: readonly RouteMessage[];
  readonly rules: readonly RuleMessage[];
};

/**
 * Extracts from dumps what an earlier agent left in the kernel. Only objects with our routing protocol or our alias
 * count, and rules of main plugins for their own Pods.
 * @param eniMarkMask Mask for rules that carry none. A rule's own mask goes first: the earlier agent may have used
 * another.
 */
export function readEvidence({ links, routes, rules }: HostDump, eniMarkMask: number): KernelEvidence {
  const ourRoutes = routes.filter(isOurs);
  const ourRules = rules.filter(({ protocol }) => protocol === RTPROT_TKE_ENI);
  const veths = links.flatMap((link) => vethOf(link, ourRoutes));
  const wiredIps = new Set(veths.flatMap(({ ips }) => ips));
  const unnamed = links.flatMap((link) => unnamedOf(link, routes));
  const anyIps = new Set([...veths, ...unnamed].flatMap(({ ips }) => ips));
  const perPod = ourRules.filter(({ priority, src }) => priority === PRIORITY.fromPod && src !== undefined);
  const isCompact = ourRules.some(
    (rule) => rule.priority === PRIORITY.podHostRoutes && rule.table === TABLE_POD_ROUTES,
  );
  const ruledByOthers = rules
    .filter(
      ({ protocol, table, src, dst }) =>
        protocol !== RTPROT_TKE_ENI && table === TABLE_MAIN && src === undefined && isHostPrefix(dst),
    )
    .map(({ dst }) => addressOf(dst));
  const isPerPod = perPod.some(({ src }) => anyIps.has(addressOf(src)));
  return {
    veths,
    ...(unnamed.length === 0 ? {} : { unnamed }),
    enis: tablesOf([...ourRoutes, ...ourRules], [...veths, ...unnamed]).map((table) =>
      eniOf(table, { links, ourRoutes, ourRules, eniMarkMask }),
    ),
    blocks: blocksOf(ourRules, ourRoutes),
    ipams: perPod.map(({ src, table }) => ({ ip: addressOf(src), table })).filter(({ ip }) => !wiredIps.has(ip)),
    ...(ruledByOthers.length === 0 ? {} : { ruledByOthers: [...new Set(ruledByOthers)] }),
    ...(isCompact ? { ruleMode: 'compact' as const } : isPerPod ? { ruleMode: 'per-pod' as const } : {}),
  };
}

function vethOf(link: LinkMessage, ourRoutes: readonly RouteMessage[]): readonly VethEvidence[] {
  // The interface of an ENI may come back from its Pod with any alias.
  const owner = link.permAddress === undefined ? parseHostVethAlias(link.ifalias ?? '') : undefined;
  return owner === undefined ? [] : [{ ...owner, ...linkOf(link, ourRoutes) }];
}

function unnamedOf(link: LinkMessage, routes: readonly RouteMessage[]): readonly UnnamedVeth[] {
  if (link.kind !== 'veth' || parseHostVethAlias(link.ifalias ?? '') !== undefined) return [];
  const toLink = routes.filter(({ oif, dst }) => oif === link.ifindex && isHostPrefix(dst));
  const [ours, others] = [toLink.filter(isOurs), toLink.filter((route) => !isOurs(route) && isPodTable(route))];
  const found = linkOf(link, ours);
  const isPodLink = isEniTable(found.table) || found.table === DIRECT_LINK_GROUP || found.ips.length > 0;
  // Of another program; or of a Pod on the bridge, which is found by its port.
  if (!isPodLink && (others.length > 0 || found.isPort === true)) return [];
  return [{ ...found, isMarked: isPodLink || isHostVethName(link.ifname) }];
}

function linkOf(link: LinkMessage, ourRoutes: readonly RouteMessage[]): LinkEvidence {
  const ips = ourRoutes
    .filter((route) => route.oif === link.ifindex && isPodTable(route))
    .map(({ dst }) => addressOf(dst));
  const { ifname: name, ifindex, mtu, group: table, address: mac = '', master = 0, link: peerIfindex } = link;
  const port = master === 0 ? {} : { isPort: true as const };
  const peer = peerIfindex === undefined ? {} : { peerIfindex };
  return { name, mac, ifindex, mtu, table, ...port, ...peer, ips: [...new Set(ips)].toSorted(byFamily) };
}

function isOurs({ protocol }: RouteMessage): boolean {
  return protocol === RTPROT_TKE_ENI;
}

function isPodTable({ table }: RouteMessage): boolean {
  return table === TABLE_POD_ROUTES || table === TABLE_MAIN;
}

function blocksOf(ourRules: readonly RuleMessage[], ourRoutes: readonly RouteMessage[]): readonly string[] {
  const rules = ourRules.filter(({ priority }) => priority === PRIORITY.podCidr);
  const unreachable = ourRoutes.filter(
    ({ table, priority }) => table === TABLE_MAIN && priority === UNREACHABLE_METRIC,
  );
  return [...new Set([...rules, ...unreachable].flatMap(({ dst }) => (dst === undefined ? [] : [dst])))].sort();
}

function tablesOf(objects: readonly (RouteMessage | RuleMessage)[], veths: readonly LinkEvidence[]): readonly number[] {
  // A flush may have removed every route and rule of an ENI; the link groups of its Pods still name its table.
  const tables = [...objects, ...veths].map(({ table }) => table).filter(isEniTable);
  return [...new Set(tables)].toSorted((a, b) => a - b);
}

type EniSources = {
  readonly links: readonly LinkMessage[];
  readonly ourRoutes: readonly RouteMessage[];
  readonly ourRules: readonly RuleMessage[];
  readonly eniMarkMask: number;
};

function eniOf(table: number, { links, ourRoutes, ourRules, eniMarkMask }: EniSources): EniEvidence {
  // Those that refuse packets are on no link, or on `lo`.
  const inTable = ourRoutes.filter((route) => route.table === table && route.type === RTN_UNICAST);
  const marked = ourRules.find((rule) => rule.table === table && rule.priority === PRIORITY.eniMark && rule.fwmark);
  const mac = permanentMac(links.find(({ ifindex }) => inTable.some(({ oif }) => oif === ifindex)) ?? {});
  const primary = ourRules
    .filter((rule) => rule.table === table && rule.priority === PRIORITY.fromEniPrimary)
    .map((rule) => {
      const gateway = inTable.find((route) => route.gateway !== undefined && route.family === rule.family)?.gateway;
      return { ip: addressOf(rule.src), ...(gateway === undefined ? {} : { gateway }) };
    });
  return {
    table,
    primary,
    ...(mac === undefined ? {} : { mac }),
    ...(marked?.fwmark === undefined ? {} : { slot: slotOfMark(marked.fwmark, marked.fwmask ?? eniMarkMask) }),
  };
}

function addressOf(prefix: string | undefined): string {
  return (prefix ?? '').split('/')[0] ?? '';
}

function byFamily(a: string, b: string): number {
  return Number(a.includes(':')) - Number(b.includes(':'));
}
