import { formatIp } from '../runtime/ip-text.ts';
import { rawBytes, u32, u32Struct } from './codec.ts';
import { attribute, headerU8, headerU16, headerU32 } from './field.ts';
import { type MessageCodec, type MessageOf, messageCodec } from './message-codec.ts';
import { AF_INET6 } from './uapi/netlink.ts';
import { XFRMA_IF_ID, XFRMA_MARK, XFRMA_TMPL } from './uapi/xfrm.ts';

const PREFIX_WORDS = 4;

/**
 * struct xfrm_userpolicy_info: struct xfrm_selector of 56 bytes (daddr, saddr, ports with masks, family, prefix lengths,
 * proto, ifindex, user), lifetimes of 96 bytes, priority, index, dir, action, flags, share.
 */
const WIRE = messageCodec('xfrm-policy', 168, {
  dst0: headerU32(0),
  dst1: headerU32(4),
  dst2: headerU32(8),
  dst3: headerU32(12),
  src0: headerU32(16),
  src1: headerU32(20),
  src2: headerU32(24),
  src3: headerU32(28),
  dportMask: headerU16(34),
  sportMask: headerU16(38),
  family: headerU16(40),
  dstBits: headerU8(42),
  srcBits: headerU8(43),
  /** IPPROTO_*; 0: any. */
  proto: headerU8(44),
  /** Link that the packet leaves by, or came in by; 0: any. */
  ifindex: headerU32(48),
  priority: headerU32(152),
  index: headerU32(156),
  /** XFRM_POLICY_IN, _OUT or _FWD; more: of one socket. */
  dir: headerU8(160),
  /** XFRM_POLICY_ALLOW or _BLOCK. */
  action: headerU8(161),
  flags: headerU8(162),
  share: headerU8(163),
  /** How packets are to be protected; absent: they pass as they are. */
  templates: attribute(XFRMA_TMPL, rawBytes),
  mark: attribute(XFRMA_MARK, u32Struct('value', 'mask')),
  /** Interface id of an xfrm link that the policy is for. */
  ifId: attribute(XFRMA_IF_ID, u32),
});

type Words = 'dst0' | 'dst1' | 'dst2' | 'dst3' | 'src0' | 'src1' | 'src2' | 'src3' | 'dstBits' | 'srcBits';

/** IPsec policy, as the kernel reports it. @see ip-xfrm(8) */
export type XfrmPolicyMessage = Omit<MessageOf<typeof WIRE>, Words> & {
  /** Prefixes: '10.0.0.0/8', '::/0'. */
  readonly src: string;
  readonly dst: string;
};

/** Decoder of policies. */
export const XFRM_POLICY: Pick<MessageCodec<XfrmPolicyMessage>, 'read' | 'decode'> = {
  read: (view, start, end) => withPrefixes(WIRE.read(view, start, end)),
  decode: (bytes) => withPrefixes(WIRE.decode(bytes)),
};

function withPrefixes(wire: MessageOf<typeof WIRE>): XfrmPolicyMessage {
  const { dst0, dst1, dst2, dst3, src0, src1, src2, src3, dstBits, srcBits, ...rest } = wire;
  return {
    ...rest,
    src: prefixOf(rest.family, [src0, src1, src2, src3], srcBits),
    dst: prefixOf(rest.family, [dst0, dst1, dst2, dst3], dstBits),
  };
}

function prefixOf(family: number, words: readonly number[], bits: number): string {
  const bytes = new Uint8Array(Uint32Array.from(words.slice(0, PREFIX_WORDS)).buffer);
  return `${formatIp(bytes, 0, family === AF_INET6 ? 16 : 4)}/${bits}`;
}

/** Request for all policies: struct xfrm_userpolicy_id, which a dump leaves empty. */
export const XFRM_POLICY_ID = messageCodec('xfrm-policy-id', 64, {});
