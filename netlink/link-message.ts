import type { ByteView } from './byte-view.ts';
import { viewOf } from './byte-view.ts';
import { ByteWriter } from './byte-writer.ts';
import { CodecError } from './codec-error.ts';
import { LINK_ATTRIBUTES, LINK_INFO, type LinkAttributes } from './link-attributes.ts';
import { BRIDGE_INFO, type BridgeInfo } from './link-kind/bridge.ts';
import type { NestedOf } from './message-codec.ts';
import { copyAttribute, type Rtattr, walkAttributes } from './rtattr.ts';
import { VETH_INFO_PEER } from './uapi/if-link.ts';

/** Network interface, as the kernel tells it. Up: `flags & IFF_UP`. @see rtnetlink(7) */
export type LinkMessage = Omit<LinkAttributes, 'linkinfo' | 'ifname' | 'mtu' | 'group'> & {
  readonly ifname: string;
  readonly mtu: number;
  readonly group: number;
  /** 'veth', 'bridge'…; absent for hardware and loopback. */
  readonly kind?: string;
  /** Kind of the bridge or bond it is a port of. */
  readonly slaveKind?: string;
  /** Parameters, when `kind` is 'bridge'. */
  readonly bridge?: NestedOf<BridgeInfo>;
  /** Other end, when `kind` is 'veth'; requests have it, the kernel's answers do not. */
  readonly peer?: Partial<LinkMessage>;
  /** Data of a kind that has no table here; written back as it came. */
  readonly kindData?: Uint8Array;
  /** Unknown attributes of IFLA_LINKINFO. */
  readonly linkinfoUnknown?: readonly Rtattr[];
};

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
  /** Administrative state. A veth's peer cannot be born up: the kernel refuses it. */
  readonly up?: boolean;
  readonly txqlen?: number;
  readonly ifalias?: string;
  /** Ifindex of a bridge; 0 takes the link out. */
  readonly master?: number;
  /** Namespace to be born in, or to move to. */
  readonly netns?: NetnsRef;
};

type NewLink = LinkProperties & {
  readonly ifname: string;
  /** Chosen index; the kernel chooses when left out. */
  readonly ifindex?: number;
  readonly numTxQueues?: number;
  readonly numRxQueues?: number;
};

/** Virtual Ethernet pair: both ends in one request, each in its namespace. @see veth(4) */
export type VethSpec = NewLink & { readonly kind: 'veth'; readonly peer: NewLink };

/** Bridge to make. */
export type BridgeSpec = NewLink & { readonly kind: 'bridge'; readonly bridge?: Partial<NestedOf<BridgeInfo>> };

/** Link of a kind without parameters: 'ifb', 'dummy', 'vrf'… as far as the kernel has it. */
export type PlainLinkSpec = NewLink & { readonly kind: 'dummy' | 'ifb' };

/** Link to make. */
export type LinkSpec = VethSpec | BridgeSpec | PlainLinkSpec;

/** Change of a link: `ifindex` says which, the rest what it shall be; a new `ifname` renames it (it must be down). */
export type LinkChange = LinkProperties & { readonly ifindex: number };

/** Names a link. */
export type LinkRef = { readonly ifindex: number } | { readonly ifname: string };
