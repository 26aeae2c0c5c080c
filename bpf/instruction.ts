import {
  BPF_ALU,
  BPF_ALU64,
  BPF_CALL,
  BPF_END,
  BPF_EXIT,
  BPF_IMM,
  BPF_JMP,
  BPF_LD,
  BPF_LDX,
  BPF_MEM,
  BPF_PSEUDO_MAP_FD,
  BPF_PSEUDO_MAP_VALUE,
  BPF_ST,
  BPF_STX,
  BPF_TO_BE,
  BPF_X,
} from './uapi/bpf.ts';

/** A register. `r0`: result; `r1` to `r5`: arguments, lost by a call; `r6` to `r9`: kept; `r10`: end of the stack, 512 bytes. */
export type Register = 'r0' | 'r1' | 'r2' | 'r3' | 'r4' | 'r5' | 'r6' | 'r7' | 'r8' | 'r9' | 'r10';

/** Bits of a value in memory. */
export type Width = 8 | 16 | 32 | 64;

/** What is done to a register with an operand; 64 bits wide. */
export type AluOperation = 'add' | 'sub' | 'or' | 'and' | 'lsh' | 'rsh' | 'mov';

/** When a jump is taken. All compare without sign; `set`: the two have a bit in common. */
export type Condition = '==' | '!=' | '>' | '>=' | '<' | '<=' | 'set';

/** Functions of the kernel that programs here call. @see bpf-helpers(7) */
export type Helper =
  | 'map_lookup_elem'
  | 'map_update_elem'
  | 'map_delete_elem'
  | 'skb_store_bytes'
  | 'l3_csum_replace'
  | 'l4_csum_replace'
  | 'clone_redirect'
  | 'redirect'
  | 'skb_pull_data'
  | 'csum_update'
  | 'ktime_get_coarse_ns'
  | 'check_mtu';

/** An operand: a register, or a number of 32 bits with sign. */
export type Operand = Register | number;

/** One instruction; `T` names where a jump leads and which map is meant: words in a source, numbers in what is loaded. */
export type Instruction<T = number> =
  | { readonly kind: 'alu'; readonly operation: AluOperation; readonly to: Register; readonly operand: Operand }
  /** `to` in network order becomes a number, or the other way round; its upper bits are 0 then. */
  | { readonly kind: 'network-order'; readonly width: 16 | 32; readonly to: Register }
  | {
      readonly kind: 'load';
      readonly width: Width;
      readonly to: Register;
      readonly from: Register;
      readonly offset: number;
    }
  | {
      readonly kind: 'store';
      readonly width: Width;
      readonly at: Register;
      readonly offset: number;
      readonly operand: Operand;
    }
  | {
      readonly kind: 'jump';
      readonly when?: { readonly register: Register; readonly is: Condition; readonly operand: Operand };
      /** In what is loaded: instructions of 8 bytes between the next one and the target. */
      readonly target: T;
    }
  /** `value`: the address of the value of an array with one element; else the map itself. Takes two instructions. */
  | { readonly kind: 'map'; readonly to: Register; readonly map: T; readonly isValue?: true }
  | { readonly kind: 'call'; readonly helper: Helper }
  | { readonly kind: 'exit' };

/** Bytes of struct bpf_insn. */
export const INSTRUCTION_BYTES = 8;

const WIDTH: Readonly<Record<Width, number>> = { 32: 0x00, 16: 0x08, 8: 0x10, 64: 0x18 };
const BPF_DW = WIDTH[64];
const ALU: Readonly<Record<AluOperation, number>> = {
  ...{ add: 0x00, sub: 0x10, or: 0x40, and: 0x50, lsh: 0x60, rsh: 0x70, mov: 0xb0 },
};
const CONDITION: Readonly<Record<Condition, number>> = {
  ...{ '==': 0x10, '>': 0x20, '>=': 0x30, set: 0x40, '!=': 0x50, '<': 0xa0, '<=': 0xb0 },
};
const HELPER: Readonly<Record<Helper, number>> = {
  ...{ map_lookup_elem: 1, map_update_elem: 2, map_delete_elem: 3, skb_store_bytes: 9, l3_csum_replace: 10 },
  ...{ l4_csum_replace: 11, clone_redirect: 13, redirect: 23, skb_pull_data: 39, csum_update: 40 },
  ...{ ktime_get_coarse_ns: 160, check_mtu: 163 },
};

const numberOf = (register: Register): number => Number(register.slice(1));

/** Returns how many instructions of 8 bytes it takes. */
export function slotsOf({ kind }: Instruction<unknown>): 1 | 2 {
  return kind === 'map' ? 2 : 1;
}

/** Encodes one instruction as struct bpf_insn, or as two of them. @throws RangeError for a number that does not fit */
export function encodeInstruction(instruction: Instruction): Uint8Array {
  switch (instruction.kind) {
    case 'alu': {
      const { operation, to, operand } = instruction;
      return encode(BPF_ALU64 | ALU[operation], to, operand, 0);
    }
    case 'network-order':
      return encode(BPF_ALU | BPF_END | BPF_TO_BE, instruction.to, instruction.width, 0);
    case 'load': {
      const { width, to, from, offset } = instruction;
      return encode(BPF_LDX | BPF_MEM | WIDTH[width], to, from, offset, 0);
    }
    case 'store': {
      const { width, at, offset, operand } = instruction;
      const code = (typeof operand === 'number' ? BPF_ST : BPF_STX) | BPF_MEM | WIDTH[width];
      return typeof operand === 'number' ? encode(code, at, operand, offset) : encode(code, at, operand, offset, 0);
    }
    case 'jump': {
      const { when, target } = instruction;
      if (when === undefined) return encode(BPF_JMP, 'r0', 0, target);
      return encode(BPF_JMP | CONDITION[when.is], when.register, when.operand, target);
    }
    case 'map': {
      const { to, map, isValue } = instruction;
      const bytes = new Uint8Array(2 * INSTRUCTION_BYTES);
      const pseudo = isValue === true ? BPF_PSEUDO_MAP_VALUE : BPF_PSEUDO_MAP_FD;
      bytes.set(encode(BPF_LD | BPF_IMM | BPF_DW, to, map, 0));
      bytes[1] = (bytes[1] ?? 0) | (pseudo << 4);
      return bytes;
    }
    case 'call':
      return encode(BPF_JMP | BPF_CALL, 'r0', HELPER[instruction.helper], 0);
    case 'exit':
      return encode(BPF_JMP | BPF_EXIT, 'r0', 0, 0);
  }
}

/** struct bpf_insn { u8 code; u8 dst_reg:4, src_reg:4; s16 off; s32 imm; }. With a register as operand, BPF_X is set. */
function encode(code: number, to: Register, operand: Operand, offset: number, isRegister = BPF_X): Uint8Array {
  const [source, immediate] = typeof operand === 'number' ? [0, operand] : [numberOf(operand), 0];
  if (!Number.isInteger(offset) || offset < -0x8000 || offset > 0x7fff) {
    throw new RangeError(`bpf: the offset ${offset} does not fit into 16 bits`);
  }
  if (!Number.isInteger(immediate) || immediate < -0x80000000 || immediate > 0xffffffff) {
    throw new RangeError(`bpf: the number ${immediate} does not fit into 32 bits`);
  }
  const bytes = new Uint8Array(INSTRUCTION_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, code | (typeof operand === 'number' ? 0 : isRegister));
  view.setUint8(1, numberOf(to) | (source << 4));
  view.setInt16(2, offset, true);
  view.setInt32(4, immediate | 0, true);
  return bytes;
}

/** Reads instructions; what is none of those above is an error. @throws RangeError */
export function decodeInstructions(bytes: Uint8Array): readonly Instruction[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found: Instruction[] = [];
  for (let at = 0; at < bytes.byteLength; at += INSTRUCTION_BYTES * slotsOf(found.at(-1) ?? { kind: 'exit' })) {
    if (at + INSTRUCTION_BYTES > bytes.byteLength) throw new RangeError(`bpf: ${bytes.byteLength - at} bytes are left`);
    found.push(decodeOne(view, at));
  }
  return found;
}

function decodeOne(view: DataView, at: number): Instruction {
  const code = view.getUint8(at);
  const [to, from] = [registerOf(view.getUint8(at + 1) & 15), view.getUint8(at + 1) >> 4];
  const [offset, immediate] = [view.getInt16(at + 2, true), view.getInt32(at + 4, true)];
  const operand: Operand = (code & BPF_X) === 0 ? immediate : registerOf(from);
  const width = keyOf(WIDTH, code & 0x18);
  if (code === (BPF_LD | BPF_IMM | BPF_DW)) {
    return { kind: 'map', to, map: immediate, ...(from === BPF_PSEUDO_MAP_VALUE && { isValue: true }) };
  }
  switch (code & 7) {
    case BPF_ALU:
      if (code === (BPF_ALU | BPF_END | BPF_TO_BE) && (immediate === 16 || immediate === 32)) {
        return { kind: 'network-order', width: immediate, to };
      }
      throw unknown(code, at);
    case BPF_ALU64:
      return { kind: 'alu', operation: keyOf(ALU, code & 0xf0), to, operand };
    case BPF_LDX:
      return { kind: 'load', width: Number(width) as Width, to, from: registerOf(from), offset };
    case BPF_ST:
      return { kind: 'store', width: Number(width) as Width, at: to, offset, operand: immediate };
    case BPF_STX:
      return { kind: 'store', width: Number(width) as Width, at: to, offset, operand: registerOf(from) };
    case BPF_JMP:
      return decodeJump(code, to, operand, offset, immediate);
    default:
      throw unknown(code, at);
  }
}

function unknown(code: number, at: number): RangeError {
  return new RangeError(`bpf: unknown instruction 0x${code.toString(16)} at byte ${at}`);
}

function decodeJump(
  code: number,
  register: Register,
  operand: Operand,
  target: number,
  immediate: number,
): Instruction {
  const operation = code & 0xf0;
  if (operation === BPF_CALL) return { kind: 'call', helper: keyOf(HELPER, immediate) };
  if (operation === BPF_EXIT) return { kind: 'exit' };
  if (operation === 0) return { kind: 'jump', target };
  return { kind: 'jump', when: { register, is: keyOf(CONDITION, operation), operand }, target };
}

function registerOf(number: number): Register {
  if (number > 10) throw new RangeError(`bpf: there is no register r${number}`);
  return `r${number}` as Register;
}

function keyOf<K extends string | number>(table: Readonly<Record<K, number>>, value: number): K {
  const found = (Object.keys(table) as K[]).find((key) => table[key] === value);
  if (found === undefined) throw new RangeError(`bpf: unknown number ${value} in an instruction`);
  return found;
}
