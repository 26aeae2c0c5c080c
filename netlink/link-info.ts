import { viewOf } from './byte-view.ts';
import { ByteWriter } from './byte-writer.ts';
import { type Codec, rawBytes, unterminatedText } from './codec.ts';
import { attribute } from './field.ts';
import { LINK_FIELDS } from './link-fields.ts';
import { BRIDGE_INFO, type BridgeInfo } from './link-kind/bridge.ts';
import { type MessageOf, messageCodec, type NestedOf, nested } from './message-codec.ts';
import type { Rtattr } from './rtattr.ts';
import { IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_INFO_SLAVE_KIND, VETH_INFO_PEER } from './uapi/if-link.ts';

const KIND_BYTES = 64;

/** Other end of a veth in a request: a whole link message without a kind of its own. */
const VETH_PEER = messageCodec('link.peer', 16, LINK_FIELDS);
/** Other end of a veth in a request. */
export type VethPeer = MessageOf<typeof VETH_PEER>;

/** What IFLA_LINKINFO holds. */
export type LinkInfo = {
  /** 'veth', 'bridge'…; absent for hardware and loopback. */
  readonly kind?: string;
  /** Kind of the bridge or bond that the link is a port of. */
  readonly slaveKind?: string;
  /** Parameters, when `kind` is 'bridge'. */
  readonly bridge?: NestedOf<BridgeInfo>;
  /** Other end, when `kind` is 'veth'; requests have it, the kernel's answers do not. */
  readonly peer?: NestedOf<VethPeer>;
  /** Data of a kind that has no table here; written back as it came. */
  readonly kindData?: Uint8Array;
  /** Attributes of IFLA_LINKINFO that are not known here. */
  readonly linkinfoUnknown?: readonly Rtattr[];
};

/** Attributes of IFLA_LINKINFO; the data is bytes here, since only the kind says what they mean. */
const LINK_INFO = messageCodec('link.linkinfo', 0, {
  kind: attribute(IFLA_INFO_KIND, unterminatedText(KIND_BYTES)),
  kindData: attribute(IFLA_INFO_DATA, rawBytes),
  slaveKind: attribute(IFLA_INFO_SLAVE_KIND, unterminatedText(KIND_BYTES)),
});

const VETH_DATA = messageCodec('link.veth', 0, { peer: attribute(VETH_INFO_PEER, nested(VETH_PEER)) });
const bridgeData = nested(BRIDGE_INFO);
const vethData = nested(VETH_DATA);
const outerInfo = nested(LINK_INFO);
/** A peer has at most a name, an alias and a dozen numbers. */
const KIND_DATA_BYTES = 4096;

/** Codec of IFLA_LINKINFO: the kind decides how its data reads. */
export const linkInfo: Codec<LinkInfo> = {
  names: LINK_INFO,
  read(view, offset, length) {
    const outer = outerInfo.read(view, offset, length);
    // An empty one would leave no trace in the message.
    if (outer === undefined || Object.keys(outer).length === 0) {
      return undefined;
    }
    const { unknown, ...info } = outer;
    const whole = unknown === undefined ? info : { ...info, linkinfoUnknown: unknown };
    return info.kindData === undefined ? whole : readKindData(whole, info.kindData);
  },
  write(writer, info) {
    const { bridge, peer, linkinfoUnknown, ...rest } = info;
    const data =
      bridge !== undefined
        ? encode(bridgeData, bridge, 'link.bridge')
        : peer !== undefined
          ? encode(vethData, { peer }, 'link.veth')
          : undefined;
    LINK_INFO.write(writer, {
      ...rest,
      ...(data === undefined ? {} : { kindData: data }),
      ...(linkinfoUnknown === undefined ? {} : { unknown: linkinfoUnknown }),
    });
  },
};

function readKindData(info: LinkInfo, bytes: Uint8Array): LinkInfo {
  const view = viewOf(bytes);
  const { kindData: _, ...known } = info;
  if (info.kind === 'bridge') {
    const bridge = bridgeData.read(view, 0, bytes.length);
    return bridge === undefined ? info : { ...known, bridge };
  }
  if (info.kind === 'veth') {
    const data = vethData.read(view, 0, bytes.length);
    return data?.peer === undefined || data.unknown !== undefined ? info : { ...known, peer: data.peer };
  }
  return info;
}

function encode<T>(codec: Codec<T>, value: T, field: string): Uint8Array {
  const writer = new ByteWriter(KIND_DATA_BYTES);
  codec.write(writer, value, field);
  return writer.written();
}
