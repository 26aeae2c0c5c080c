import { viewOf } from './byte-view.ts';
import { attribute } from './field.ts';
import { LINK_FIELDS } from './link-fields.ts';
import { type LinkInfo, linkInfo } from './link-info.ts';
import type { BridgeInfo } from './link-kind/bridge.ts';
import { BRIDGE_PORT, type BridgePort } from './link-kind/bridge-port.ts';
import { type MessageCodec, type MessageOf, messageCodec, type NestedOf, nested } from './message-codec.ts';
import { IFLA_LINKINFO } from './uapi/if-link.ts';
import { AF_BRIDGE } from './uapi/netlink.ts';

/** Link message in its wire form. */
const LINK_WIRE = messageCodec('link', 16, { ...LINK_FIELDS, linkinfo: attribute(IFLA_LINKINFO, linkInfo) });
type LinkWire = MessageOf<typeof LINK_WIRE>;

/** Network interface, as the kernel reports it. Up: `flags & IFF_UP`. @see rtnetlink(7) */
export type LinkMessage = Omit<LinkWire, 'linkinfo' | 'ifname' | 'mtu' | 'group'> &
  LinkInfo & { readonly ifname: string; readonly mtu: number; readonly group: number };

/** Codec of link messages: the content of IFLA_LINKINFO is put beside the other fields. */
export const LINK: MessageCodec<LinkMessage> = {
  name: LINK_WIRE.name,
  headerBytes: LINK_WIRE.headerBytes,
  attributeName: LINK_WIRE.attributeName,
  within: (type) => LINK_WIRE.within?.(type),
  read: (view, start, end) => flatten(LINK_WIRE.read(view, start, end)),
  write: (writer, message) => LINK_WIRE.write(writer, unflatten(message)),
  decode: (bytes) => flatten(LINK_WIRE.decode(bytes)),
};

function flatten(wire: LinkWire): LinkMessage {
  const { linkinfo, ...rest } = wire;
  return { ...rest, ifname: wire.ifname ?? '', mtu: wire.mtu ?? 0, group: wire.group ?? 0, ...linkinfo };
}

function unflatten(message: Partial<LinkMessage>): Partial<LinkWire> {
  const { kind, slaveKind, bridge, macvlan, bridgePort, slaveData, peer, kindData, linkinfoUnknown, ...rest } = message;
  const linkinfo = {
    ...(kind === undefined ? {} : { kind }),
    ...(slaveKind === undefined ? {} : { slaveKind }),
    ...(bridge === undefined ? {} : { bridge }),
    ...(macvlan === undefined ? {} : { macvlan }),
    ...(bridgePort === undefined ? {} : { bridgePort }),
    ...(slaveData === undefined ? {} : { slaveData }),
    ...(peer === undefined ? {} : { peer }),
    ...(kindData === undefined ? {} : { kindData }),
    ...(linkinfoUnknown === undefined ? {} : { linkinfoUnknown }),
  };
  return Object.keys(linkinfo).length === 0 ? rest : { ...rest, linkinfo };
}

/**
 * Returns the parameters of a port of a bridge. The bridge notifies a change of them in a message of its own, of the
 * family AF_BRIDGE.
 */
export function bridgePortOf({ family, protinfo, bridgePort }: LinkMessage): NestedOf<BridgePort> | undefined {
  if (family !== AF_BRIDGE || protinfo === undefined) return bridgePort;
  return PORT.read(viewOf(protinfo), 0, protinfo.length);
}

const PORT = nested(BRIDGE_PORT);

/** Descriptor of a namespace; a `Netns` is one. */
export type NetnsRef = { readonly fd: number };

/** Properties that every link has. @see ip-link(8) */
export type LinkProperties = {
  readonly ifname?: string;
  /** MAC. */
  readonly address?: string;
  readonly broadcast?: string;
  readonly mtu?: number;
  readonly group?: number;
  /** Administrative state. A veth's peer cannot be created up: the kernel refuses it. */
  readonly up?: boolean;
  /** Whether the kernel asks for neighbours on the link and answers them; false sets IFF_NOARP. */
  readonly arp?: boolean;
  /** Whether the link takes every frame; true sets IFF_PROMISC. */
  readonly promisc?: boolean;
  readonly txqlen?: number;
  /** Free text, at most 255 bytes. On a new link the kernel ignores it, so it is set by a second request. */
  readonly ifalias?: string;
  /** Ifindex of a bridge, bond or VRF; 0 takes the link out. */
  readonly master?: number;
  /** Namespace to create the link in, or to move it to. */
  readonly netns?: NetnsRef;
};

type NewLink = LinkProperties & {
  readonly ifname: string;
  /** Wanted index; absent: the kernel selects one. */
  readonly ifindex?: number;
  readonly numTxQueues?: number;
  readonly numRxQueues?: number;
};

/** Virtual Ethernet pair: both ends in one request, each in its namespace. @see veth(4) */
type VethSpec = NewLink & {
  readonly kind: 'veth';
  /** Other end. Its alias and bridge can only be set after it exists: the kernel would ignore them here. */
  readonly peer: Omit<NewLink, 'ifalias' | 'master'>;
};

/** Bridge to make. */
type BridgeSpec = NewLink & { readonly kind: 'bridge'; readonly bridge?: NestedOf<BridgeInfo> };

/** Link of a kind without parameters: 'ifb', 'dummy', 'vrf'… if the kernel supports it. */
type PlainLinkSpec = NewLink & { readonly kind: 'dummy' | 'ifb' };

/** Link to make. */
export type LinkSpec = VethSpec | BridgeSpec | PlainLinkSpec;

/** Change of a link: `ifindex` selects it, the rest is its new state; a new `ifname` renames it (it must be down). */
export type LinkChange = LinkProperties & {
  readonly ifindex: number;
  /** Parameters of a port of a bridge. The kernel ignores them in the request that makes the link a port. */
  readonly bridgePort?: NestedOf<BridgePort>;
};

/** Selects a link by index or name. */
export type LinkRef = { readonly ifindex: number } | { readonly ifname: string };
