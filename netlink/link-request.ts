import { CodecError } from './codec-error.ts';
import type { LinkChange, LinkMessage, LinkProperties, LinkRef, LinkSpec } from './link-message.ts';
import { IFF_NOARP, IFF_UP } from './uapi/if-link.ts';

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
  return { ifindex: change.ifindex, ...propertyFields(change) };
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
  if (spec.up !== undefined || spec.arp !== undefined) {
    fields.flags = (spec.up === true ? IFF_UP : 0) | (spec.arp === false ? IFF_NOARP : 0);
    fields.change = (spec.up === undefined ? 0 : IFF_UP) | (spec.arp === undefined ? 0 : IFF_NOARP);
  }
  return fields;
}

type Mutable = { -readonly [K in keyof LinkMessage]?: LinkMessage[K] };

function put<K extends keyof Mutable>(fields: Mutable, key: K, value: Mutable[K]): void {
  if (value !== undefined) {
    fields[key] = value;
  }
}
