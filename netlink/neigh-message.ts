import { ipAddress, linkAddress, u8, u32, u32Struct } from './codec.ts';
import { attribute, headerU8, headerU16, headerU32, requiredAttribute } from './field.ts';
import { type MessageOf, messageCodec } from './message-codec.ts';
import {
  NDA_CACHEINFO,
  NDA_DST,
  NDA_FLAGS_EXT,
  NDA_IFINDEX,
  NDA_LLADDR,
  NDA_MASTER,
  NDA_PROBES,
  NDA_PROTOCOL,
} from './uapi/neighbour.ts';

/**
 * struct ndmsg { u8 family; u8 pad1; u16 pad2; s32 ifindex; u16 state; u8 flags; u8 type; }
 * @see uapi/linux/neighbour.h
 */
export const NEIGH = messageCodec('neigh', 12, {
  family: headerU8(0),
  ifindex: headerU32(4),
  /** NUD_*. */
  state: headerU16(8),
  /** NTF_*. */
  flags: headerU8(10),
  /** RTN_*. */
  type: headerU8(11),
  dst: requiredAttribute(NDA_DST, ipAddress, ''),
  lladdr: attribute(NDA_LLADDR, linkAddress),
  probes: attribute(NDA_PROBES, u32),
  nhIfindex: attribute(NDA_IFINDEX, u32),
  master: attribute(NDA_MASTER, u32),
  protocol: attribute(NDA_PROTOCOL, u8),
  /** NTF_EXT_*: flags that do not fit into the header. */
  flagsExt: attribute(NDA_FLAGS_EXT, u32),
  /** struct nda_cacheinfo: ages in USER_HZ. */
  cacheinfo: attribute(NDA_CACHEINFO, u32Struct('confirmed', 'used', 'updated', 'refcnt')),
});

/** Entry of the neighbour table, as the kernel reports it. */
export type NeighMessage = MessageOf<typeof NEIGH>;

/** Neighbour to add, replace or delete. @see ip-neighbour(8) */
export type NeighSpec = {
  readonly ifindex: number;
  readonly dst: string;
  /** Link-layer address; not needed to delete. */
  readonly lladdr?: string;
  /** AF_INET or AF_INET6; follows from `dst` when left out. */
  readonly family?: number;
  /** NUD_*; NUD_PERMANENT when left out. */
  readonly state?: number;
  /** NTF_*. */
  readonly flags?: number;
  readonly protocol?: number;
};
