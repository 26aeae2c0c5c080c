import { parseHostVethAlias } from '../../../dataplane/host-veth-name.ts';
import { isOurTable, RTPROT_TKE_ENI, TABLE_ENI_BASE } from '../../../dataplane/numbers.ts';
import type { AddressMessage } from '../../../netlink/address-message.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import type { MonitorEvent } from '../../../netlink/monitor.ts';
import type { NeighMessage } from '../../../netlink/neigh-message.ts';
import { renderRequest } from '../../../netlink/render-request.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import type { RuleMessage } from '../../../netlink/rule-message.ts';
import { senderName } from '../../../netlink/sender-name.ts';
import { IFF_UP } from '../../../netlink/uapi/if-link.ts';
import { NUD_PERMANENT } from '../../../netlink/uapi/neighbour.ts';
import { RT_TABLE_LOCAL, RTN_MULTICAST, RTPROT_KERNEL } from '../../../netlink/uapi/rtnetlink.ts';
import type { WatchNames } from './names.ts';
import type { WatchEvent, WatchKind, WatchOwner } from './watch-event.ts';

/** Describes kernel notifications. */
type EventDescriber = {
  /** Records a link that exists at the start. */
  trackLink(link: LinkMessage): void;
  /** Describes a notification; undefined when it has no visible change. */
  describe(event: MonitorEvent, atMs: number): WatchEvent | undefined;
};

/** Settings and traffic control are not watched. */
type NotShown = 'netconf' | 'qdisc' | 'filter';

const KIND = {
  link: 'link',
  address: 'address',
  route: 'route',
  rule: 'rule',
  neigh: 'neigh',
  nftables: 'nft',
  overrun: 'lost',
} as const satisfies Readonly<Record<Exclude<MonitorEvent['kind'], NotShown>, WatchKind>>;

type Description = Pick<WatchEvent, 'change' | 'text' | 'isOurs' | 'isNoise'> & {
  readonly owner?: WatchOwner | undefined;
};

/** Creates a describer. It tracks links, since notifications contain only their indexes. */
export function createEventDescriber(names: WatchNames, sender: typeof senderName = senderName): EventDescriber {
  const links = new Map<number, LinkMessage>();
  const context: Context = {
    names,
    nameOf: (ifindex) => links.get(ifindex)?.ifname ?? `if${ifindex}`,
    ownerOfLink: (ifindex) => ownerOfLink(links.get(ifindex), names),
  };
  const describeLink = (message: LinkMessage, op: 'new' | 'del'): Description | undefined => {
    const before = links.get(message.ifindex);
    if (op === 'del') links.delete(message.ifindex);
    // Partial messages (for example of a bridge port) lack some of the link's fields.
    else links.set(message.ifindex, { ...before, ...message, ifname: message.ifname || (before?.ifname ?? '') });
    const owner = ownerOfLink(message, names) ?? ownerOfLink(before, names);
    const base = { isOurs: owner !== undefined, isNoise: false, owner };
    if (op === 'del') return { ...base, change: '-', text: linkText(before ?? message) };
    if (before === undefined) return { ...base, change: '+', text: linkText(message) };
    const changes = linkChanges(before, message);
    return changes.length === 0 ? undefined : { ...base, change: '~', text: `${message.ifname} ${changes.join(', ')}` };
  };
  const describeChange = (event: MonitorEvent): Description | undefined => {
    const change = 'op' in event && event.op === 'del' ? '-' : '+';
    switch (event.kind) {
      case 'netconf':
      case 'qdisc':
      case 'filter':
        return undefined;
      case 'link':
        return describeLink(event.message, event.op);
      case 'address':
        return { change, ...describeAddress(event.message, context) };
      case 'route':
        return { change, ...describeRoute(event.message, context) };
      case 'rule':
        return { change, ...describeRule(event.message, context) };
      case 'neigh':
        return { change, ...describeNeigh(event.message, context) };
      case 'nftables':
        return { change: '~', text: nftText(event), isOurs: false, isNoise: false };
      case 'overrun':
        return { change: '~', text: 'notifications of the kernel were lost here', isOurs: false, isNoise: false };
    }
  };
  return {
    trackLink: (link) => links.set(link.ifindex, link),
    describe: (event, atMs) => {
      const description = describeChange(event);
      if (description === undefined || !isShown(event)) return undefined;
      const { owner, ...rest } = description;
      return {
        ...{ atMs, source: 'kernel', kind: KIND[event.kind], ...rest },
        ...(owner === undefined ? {} : { owner }),
        ...byWhom(event, sender),
      };
    },
  };
}

/** Names the process, where the kernel names its port: of links, neighbours and IPv6 addresses it does not. nftables names its own. */
function byWhom(event: MonitorEvent, sender: typeof senderName): { readonly by?: string } {
  if (event.kind === 'overrun' || event.kind === 'nftables' || event.portid === 0) return {};
  const by = sender(event.portid);
  return by === undefined ? {} : { by };
}

function isShown(event: MonitorEvent): event is Exclude<MonitorEvent, { readonly kind: NotShown }> {
  return event.kind !== 'netconf' && event.kind !== 'qdisc' && event.kind !== 'filter';
}

type Context = {
  readonly names: WatchNames;
  readonly nameOf: (ifindex: number) => string;
  readonly ownerOfLink: (ifindex: number) => WatchOwner | undefined;
};

function ownerOfLink(link: LinkMessage | undefined, names: WatchNames): WatchOwner | undefined {
  if (link === undefined) return undefined;
  const sandbox = link.ifalias === undefined ? undefined : parseHostVethAlias(link.ifalias);
  if (sandbox !== undefined) return names.podOfSandbox(sandbox.containerId, sandbox.ifName);
  // The agent sets the alias shortly after the link is created.
  if (link.kind === 'veth') {
    const pod = names.podOfVeth(link.ifname);
    if (pod !== undefined) return pod;
  }
  // Of all links only an ENI has a MAC that the agent recorded.
  const eni = link.address === undefined || link.ifname === 'lo' ? undefined : names.eniOfMac(link.address);
  return eni === undefined ? undefined : { kind: 'eni', eniId: eni.eniId, ifname: link.ifname, table: eni.table };
}

function linkText(link: LinkMessage): string {
  const fields = [link.ifname, link.kind ?? '', isUp(link) ? 'up' : 'down', `mtu ${link.mtu}`];
  if (link.group !== 0) fields.push(`group ${link.group}`);
  if (link.address !== undefined) fields.push(link.address);
  return fields.filter((field) => field !== '').join(' ');
}

function isUp(link: LinkMessage): boolean {
  return (link.flags & IFF_UP) !== 0;
}

function linkChanges(before: LinkMessage, after: LinkMessage): readonly string[] {
  const changes: string[] = [];
  if (after.ifname !== '' && before.ifname !== after.ifname) changes.push(`was ${before.ifname}`);
  if (isUp(before) !== isUp(after)) changes.push(isUp(after) ? 'set up' : 'set down');
  if (before.carrier !== after.carrier && after.carrier !== undefined) {
    changes.push(after.carrier === 1 ? 'has carrier' : 'lost its carrier');
  }
  if (before.mtu !== after.mtu && after.mtu !== 0) changes.push(`mtu ${before.mtu} -> ${after.mtu}`);
  if (before.group !== after.group) changes.push(`group ${before.group} -> ${after.group}`);
  if (before.address !== after.address && after.address !== undefined) {
    changes.push(`MAC ${before.address} -> ${after.address}`);
  }
  if ((before.ifalias ?? '') !== (after.ifalias ?? '')) changes.push(`alias "${after.ifalias ?? ''}"`);
  if ((before.master ?? 0) !== (after.master ?? 0))
    changes.push(`master ${before.master ?? 0} -> ${after.master ?? 0}`);
  return changes;
}

type Rest = Omit<Description, 'change'>;

function describeAddress(message: AddressMessage, { nameOf, ownerOfLink: ownerOf }: Context): Rest {
  const owner = ownerOf(message.ifindex);
  const text = bare(renderRequest({ object: 'address', verb: 'add', spec: message }, nameOf));
  return { text, isOurs: owner !== undefined, isNoise: false, owner };
}

function describeRoute(message: RouteMessage, { names, nameOf, ownerOfLink: ownerOf }: Context): Rest {
  const isOurs = message.protocol === RTPROT_TKE_ENI;
  const isKernels = message.protocol === RTPROT_KERNEL;
  const text = bare(renderRequest({ object: 'route', verb: 'add', spec: message }, nameOf));
  const owner =
    ownerOfPrefix(message.dst, names) ??
    (message.table > TABLE_ENI_BASE ? ownerOfTable(message.table, names, nameOf, message.oif) : undefined) ??
    (message.oif === undefined ? undefined : ownerOf(message.oif)) ??
    (isOurs ? NODE : undefined);
  const isNoise = isKernels && (message.table === RT_TABLE_LOCAL || message.type === RTN_MULTICAST);
  return { text, isOurs, isNoise, owner };
}

function describeRule(message: RuleMessage, { names, nameOf }: Context): Rest {
  const isOurs = message.protocol === RTPROT_TKE_ENI;
  const text = bare(renderRequest({ object: 'rule', verb: 'add', spec: message }, nameOf));
  const owner =
    ownerOfPrefix(message.src, names) ??
    ownerOfPrefix(message.dst, names) ??
    (message.table > TABLE_ENI_BASE ? ownerOfTable(message.table, names, nameOf) : undefined) ??
    (isOurs || isOurTable(message.table) ? NODE : undefined);
  return { text, isOurs, isNoise: false, owner };
}

/** Describes a neighbour. One without an address is an entry of a bridge's forwarding table. */
function describeNeigh(message: NeighMessage, { names, nameOf, ownerOfLink: ownerOf }: Context): Rest {
  const isPermanent = (message.state & NUD_PERMANENT) !== 0;
  const text = bare(renderRequest({ object: 'neigh', verb: 'add', spec: message }, nameOf));
  const owner = names.podOfIp(message.dst) ?? ownerOf(message.ifindex);
  return { text, isOurs: message.protocol === RTPROT_TKE_ENI, isNoise: !isPermanent || message.dst === '', owner };
}

const NODE: WatchOwner = { kind: 'node' };

/** Returns the Pod of a host prefix; a subnet belongs to no Pod. */
function ownerOfPrefix(prefix: string | undefined, names: WatchNames): WatchOwner | undefined {
  const match = /^(.*)\/(32|128)$/.exec(prefix ?? '');
  return match?.[1] === undefined ? undefined : names.podOfIp(match[1]);
}

function ownerOfTable(
  table: number,
  names: WatchNames,
  nameOf: (ifindex: number) => string,
  oif?: number,
): WatchOwner | undefined {
  const record = names.eniOfTable(table);
  if (record === undefined) return undefined;
  return { kind: 'eni', eniId: record.eniId, ifname: oif === undefined ? '' : nameOf(oif), table };
}

/** Removes the command: the rest is what `ip` prints for the object itself. */
function bare(request: string): string {
  return request.replace(/^ip (?:-6 )?\w+ add /, '');
}

function nftText({ process, pid, generation }: Extract<MonitorEvent, { readonly kind: 'nftables' }>): string {
  const by = process === undefined ? 'an unknown process' : `${process}${pid === undefined ? '' : ` (pid ${pid})`}`;

  return `rule set changed by ${by}, generation ${generation ?? '?'}`;
}
