import { CodecError } from './codec-error.ts';
import type { LinkChange, LinkMessage, LinkProperties, LinkRef, LinkSpec } from './link-message.ts';
import { IFF_NOARP, IFF_PROMISC, IFF_UP } from './uapi/if-link.ts';

/** Builds the message that requests a new link. @throws CodecError */
export function linkMessageOf(spec: LinkSpec): Partial<LinkMessage> {
  if (spec.ifalias !== undefined && spec.netns !== undefined) {
    throw new CodecError('link.ifalias', 'cannot be set on a link that is born in another namespace; set it there');
  }
  const message = { ...newLinkFields(spec), kind: spec.kind };
  switch (spec.kind) {
    case 'veth':
      if (spec.peer.ifindex !== undefined && spec.ifindex === undefined) {
        throw new CodecError('link.peer.ifindex', 'the kernel heeds it only when this end has a chosen ifindex too');
      }
      return { ...message, peer: newLinkFields(spec.peer) };
    case 'bridge':
      return spec.bridge === undefined ? message : { ...message, bridge: spec.bridge };
    default:
      return message;
  }
}

/** Builds the message that changes a link. */
export function linkMessageOfChange(change: LinkChange): Partial<LinkMessage> {
  const { ifindex, bridgePort } = change;
  const fields = { ifindex, ...propertyFields(change) };
  // For IFLA_INFO_KIND 'bridge_slave', which iproute2 sends, new kernels look for a module at each request.
  return bridgePort === undefined ? fields : { ...fields, slaveKind: 'bridge', bridgePort };
}

/** Builds the message that selects a link. */
export function linkMessageOfRef(ref: LinkRef): Partial<LinkMessage> {
  return 'ifindex' in ref ? { ifindex: ref.ifindex } : { ifname: ref.ifname };
}

type NewLink = LinkProperties & {
  readonly ifindex?: number;
  readonly numTxQueues?: number;
  readonly numRxQueues?: number;
};

function newLinkFields(spec: NewLink): Partial<LinkMessage> {
  const fields: Mutable = propertyFields(spec);
  put(fields, 'ifindex', spec.ifindex);
  put(fields, 'numTxQueues', spec.numTxQueues);
  put(fields, 'numRxQueues', spec.numRxQueues);
  return fields;
}

function propertyFields(spec: LinkProperties): Mutable {
  const fields: Mutable = {};
  put(fields, 'ifname', spec.ifname);
  put(fields, 'address', spec.address);
  put(fields, 'broadcast', spec.broadcast);
  put(fields, 'mtu', spec.mtu);
  put(fields, 'group', spec.group);
  put(fields, 'txqlen', spec.txqlen);
  put(fields, 'ifalias', spec.ifalias);
  put(fields, 'master', spec.master);
  put(fields, 'netNsFd', spec.netns?.fd);
  const flags = flagFields(spec);
  if (flags.change !== 0) Object.assign(fields, flags);
  return fields;
}

/** The flags to set, and which flags are meant. */
function flagFields({ up, arp, promisc }: LinkProperties): { readonly flags: number; readonly change: number } {
  return {
    flags: (up === true ? IFF_UP : 0) | (arp === false ? IFF_NOARP : 0) | (promisc === true ? IFF_PROMISC : 0),
    change:
      (up === undefined ? 0 : IFF_UP) | (arp === undefined ? 0 : IFF_NOARP) | (promisc === undefined ? 0 : IFF_PROMISC),
  };
}

type Mutable = { -readonly [K in keyof LinkMessage]?: LinkMessage[K] };

function put<K extends keyof Mutable>(fields: Mutable, key: K, value: Mutable[K]): void {
  if (value !== undefined) {
    fields[key] = value;
  }
}
