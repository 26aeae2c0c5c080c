/** Constants of bpf(2), kernel names kept. @see uapi/linux/bpf.h, uapi/linux/bpf_common.h */
export const BPF_MAP_CREATE = 0;
export const BPF_MAP_LOOKUP_ELEM = 1;
export const BPF_MAP_UPDATE_ELEM = 2;
export const BPF_PROG_LOAD = 5;
export const BPF_PROG_GET_FD_BY_ID = 13;
export const BPF_MAP_GET_FD_BY_ID = 14;
export const BPF_OBJ_GET_INFO_BY_FD = 15;
export const BPF_MAP_LOOKUP_BATCH = 24;

export const BPF_MAP_TYPE_ARRAY = 2;
export const BPF_MAP_TYPE_PERCPU_ARRAY = 6;
export const BPF_MAP_TYPE_LRU_HASH = 9;

export const BPF_PROG_TYPE_SCHED_CLS = 3;

/** Longest name of a map or program, NUL included. */
export const BPF_OBJ_NAME_LEN = 16;
export const BPF_TAG_SIZE = 8;

export const BPF_LD = 0x00;
export const BPF_LDX = 0x01;
export const BPF_ST = 0x02;
export const BPF_STX = 0x03;
export const BPF_ALU = 0x04;
export const BPF_JMP = 0x05;
export const BPF_ALU64 = 0x07;

export const BPF_IMM = 0x00;
export const BPF_MEM = 0x60;
export const BPF_X = 0x08;
export const BPF_CALL = 0x80;
export const BPF_EXIT = 0x90;
/** Of BPF_ALU, with BPF_TO_BE: the immediate is the width. */
export const BPF_END = 0xd0;
export const BPF_TO_BE = 0x08;

/** Of an instruction BPF_LD | BPF_IMM | BPF_DW: the immediate is a map, or an address in the value of an array of one element. */
export const BPF_PSEUDO_MAP_FD = 1;
export const BPF_PSEUDO_MAP_VALUE = 2;

/** A classifier returns it when the next filter decides. */
export const TC_ACT_UNSPEC = -1;
