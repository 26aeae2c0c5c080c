/**
 * Constants of neighbour messages, kernel names kept.
 * @see uapi/linux/neighbour.h
 */
export const NDA_DST = 1;
export const NDA_LLADDR = 2;
export const NDA_CACHEINFO = 3;
export const NDA_PROBES = 4;
export const NDA_IFINDEX = 8;
export const NDA_MASTER = 9;
export const NDA_PROTOCOL = 12;
export const NDA_FLAGS_EXT = 15;

export const NUD_NONE = 0x00;
export const NUD_INCOMPLETE = 0x01;
export const NUD_REACHABLE = 0x02;
export const NUD_STALE = 0x04;
export const NUD_DELAY = 0x08;
export const NUD_PROBE = 0x10;
export const NUD_FAILED = 0x20;
export const NUD_NOARP = 0x40;
export const NUD_PERMANENT = 0x80;

export const NTF_USE = 0x01;
export const NTF_SELF = 0x02;
export const NTF_MASTER = 0x04;
export const NTF_PROXY = 0x08;
export const NTF_EXT_LEARNED = 0x10;
export const NTF_OFFLOADED = 0x20;
export const NTF_STICKY = 0x40;
export const NTF_ROUTER = 0x80;
export const NTF_EXT_MANAGED = 0x01;
export const NTF_EXT_LOCKED = 0x02;
export const NTF_EXT_EXT_VALIDATED = 0x04;
