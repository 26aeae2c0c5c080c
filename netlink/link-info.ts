import { viewOf } from './byte-view.ts';
import { ByteWriter } from './byte-writer.ts';
import { type Codec, rawBytes, unterminatedText } from './codec.ts';
import { attribute } from './field.ts';
import { LINK_FIELDS } from './link-fields.ts';
import { BRIDGE_INFO, type BridgeInfo } from './link-kind/bridge.ts';
import { BRIDGE_PORT, type BridgePort } from './link-kind/bridge-port.ts';
import { MACVLAN_INFO, type MacvlanInfo } from './link-kind/macvlan.ts';
import { type MessageOf, messageCodec, type NestedOf, nested } from './message-codec.ts';
import type { Rtattr } from './rtattr.ts';
import {
  IFLA_INFO_DATA,
  IFLA_INFO_KIND,
  IFLA_INFO_SLAVE_DATA,
  IFLA_INFO_SLAVE_KIND,
  VETH_INFO_PEER,
} from './uapi/if-link.ts';

const KIND_BYTES = 64;

/** Other end of a veth in a request: a whole link message without a kind of its own. */
const VETH_PEER = messageCodec('link.peer', 16, LINK_FIELDS);
/** Other end of a veth in a request. */
type VethPeer = MessageOf<typeof VETH_PEER>;

/** The content of IFLA_LINKINFO. */
export type LinkInfo = {
  /** 'veth', 'bridge'…; absent for hardware and loopback. */
  readonly kind?: string;
  /** Kind of the bridge or bond that the link is a port of. */
  readonly slaveKind?: string;
  /** Parameters, when `kind` is 'bridge'. */
  readonly bridge?: NestedOf<BridgeInfo>;
  /** Other end, when `kind` is 'veth'; only requests have it, the kernel does not report it. */
  readonly peer?: NestedOf<VethPeer>;
  /** Parameters, when `slaveKind` is 'bridge'. */
  readonly bridgePort?: NestedOf<BridgePort>;
  /** Parameters, when `kind` is 'macvlan' or 'macvtap'. */
  readonly macvlan?: NestedOf<MacvlanInfo>;
  /** Data of a port of an unknown kind; written back unchanged. */
  readonly slaveData?: Uint8Array;
  /** Data of an unknown kind; written back unchanged. */
  readonly kindData?: Uint8Array;
  /** Unknown attributes of IFLA_LINKINFO. */
  readonly linkinfoUnknown?: readonly Rtattr[];
};

/** Attributes of IFLA_LINKINFO; the data is bytes here, because its meaning depends on the kind. */
const LINK_INFO = messageCodec('link.linkinfo', 0, {
  kind: attribute(IFLA_INFO_KIND, unterminatedText(KIND_BYTES)),
  kindData: attribute(IFLA_INFO_DATA, rawBytes),
  slaveKind: attribute(IFLA_INFO_SLAVE_KIND, unterminatedText(KIND_BYTES)),
  slaveData: attribute(IFLA_INFO_SLAVE_DATA, rawBytes),
});

const VETH_DATA = messageCodec('link.veth', 0, { peer: attribute(VETH_INFO_PEER, nested(VETH_PEER)) });
const outerInfo = nested(LINK_INFO);
/** A peer has at most a name, an alias and a dozen numbers; a bridge has fifty. */
const KIND_DATA_BYTES = 4096;

/** The field of each kind's data in a message, and its codec. */
const KIND_DATA = {
  bridge: ['bridge', nested(BRIDGE_INFO)],
  macvlan: ['macvlan', nested(MACVLAN_INFO)],
  macvtap: ['macvlan', nested(MACVLAN_INFO)],
} as const satisfies Readonly<Record<string, readonly [keyof LinkInfo, Codec<never> | Codec<object>]>>;
const vethData = nested(VETH_DATA);
const portData = nested(BRIDGE_PORT);

/** Codec of IFLA_LINKINFO: the kind determines the codec of its data. */
export const linkInfo: Codec<LinkInfo> = {
  names: LINK_INFO,
  read(view, offset, length) {
    const outer = outerInfo.read(view, offset, length);
    // An empty one would leave nothing in the message.
    if (outer === undefined || Object.keys(outer).length === 0) {
      return undefined;
    }
    const { unknown, ...info } = outer;
    const withUnknown = unknown === undefined ? info : { ...info, linkinfoUnknown: unknown };
    const withPort = info.slaveData === undefined ? withUnknown : readSlaveData(withUnknown, info.slaveData);
    return info.kindData === undefined ? withPort : readKindData(withPort, info.kindData);
  },
  write(writer, info) {
    const { bridge, macvlan, peer, bridgePort, linkinfoUnknown, ...rest } = info;
    const kindData = encodeKindData(info);
    LINK_INFO.write(writer, {
      ...rest,
      ...(kindData === undefined ? {} : { kindData }),
      ...(bridgePort === undefined ? {} : { slaveData: encode(portData, bridgePort, 'link.bridgePort') }),
      ...(linkinfoUnknown === undefined ? {} : { unknown: linkinfoUnknown }),
    });
  },
};

function readKindData(info: LinkInfo, bytes: Uint8Array): LinkInfo {
  const view = viewOf(bytes);
  const { kindData: _, ...known } = info;
  if (info.kind === 'veth') {
    const data = vethData.read(view, 0, bytes.length);
    return data?.peer === undefined || data.unknown !== undefined ? info : { ...known, peer: data.peer };
  }
  if (info.kind === undefined || !Object.hasOwn(KIND_DATA, info.kind)) return info;
  const [field, codec] = KIND_DATA[info.kind as keyof typeof KIND_DATA];
  const data = codec.read(view, 0, bytes.length);
  return data === undefined ? info : { ...known, [field]: data };
}

function readSlaveData(info: LinkInfo, bytes: Uint8Array): LinkInfo {
  const { slaveData: _, ...known } = info;
  const port = info.slaveKind === 'bridge' ? portData.read(viewOf(bytes), 0, bytes.length) : undefined;
  return port === undefined ? info : { ...known, bridgePort: port };
}

function encodeKindData({ bridge, macvlan, peer }: LinkInfo): Uint8Array | undefined {
  if (bridge !== undefined) return encode(KIND_DATA.bridge[1], bridge, 'link.bridge');
  if (macvlan !== undefined) return encode(KIND_DATA.macvlan[1], macvlan, 'link.macvlan');
  return peer === undefined ? undefined : encode(vethData, { peer }, 'link.veth');
}

function encode<T>(codec: Codec<T>, value: T, field: string): Uint8Array {
  const writer = new ByteWriter(KIND_DATA_BYTES);
  codec.write(writer, value, field);
  return writer.written();
}
