/**
 * Constants of traffic control, kernel names kept.
 * @see uapi/linux/rtnetlink.h, uapi/linux/pkt_sched.h, uapi/linux/pkt_cls.h
 */
export const TCA_KIND = 1;
export const TCA_OPTIONS = 2;

export const TC_H_INGRESS_EGRESS = 0xffff0000;
/** Parent of a clsact discipline. */
export const TC_H_CLSACT = 0xfffffff1;
export const TC_H_MIN_INGRESS = 0xfff2;
export const TC_H_MIN_EGRESS = 0xfff3;

/** In place of a link: the filters of a block that links share. */
export const TCM_IFINDEX_MAGIC_BLOCK = 0xffffffff;

export const TCA_TBF_PARMS = 1;

export const TCA_ACT_KIND = 1;
export const TCA_ACT_OPTIONS = 2;
/** Parameters of an action: the same number for every kind that is read here. */
export const TCA_ACT_PARMS = 2;
export const TCA_BPF_FD = 6;
export const TCA_BPF_NAME = 7;
export const TCA_BPF_FLAGS = 8;
export const TCA_BPF_TAG = 10;
export const TCA_BPF_ID = 11;
export const TCA_BPF_FLAG_ACT_DIRECT = 1;

export const TC_ACT_SHOT = 2;
export const TC_ACT_STOLEN = 4;

export const TCA_EGRESS_REDIR = 1;
export const TCA_INGRESS_REDIR = 3;
