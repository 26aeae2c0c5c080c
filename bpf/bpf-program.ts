import { BpfAttr, BpfDescriptor, callBpf, readInfo, textAt } from './bpf-call.ts';
import { BpfError } from './bpf-error.ts';
import { disassemble } from './disassemble.ts';
import { ForeignMemory } from './foreign-memory.ts';
import { INSTRUCTION_BYTES } from './instruction.ts';
import {
  BPF_OBJ_NAME_LEN,
  BPF_PROG_GET_FD_BY_ID,
  BPF_PROG_LOAD,
  BPF_PROG_TYPE_SCHED_CLS,
  BPF_TAG_SIZE,
} from './uapi/bpf.ts';

/** What the kernel says of a loaded program. */
type ProgramInfo = {
  readonly id: number;
  /** Hash of the instructions without descriptors: the same for the same source. Hexadecimal. */
  readonly tag: string;
  readonly name: string;
  readonly mapIds: readonly number[];
};

/** A loaded program for cls_bpf. */
export class BpfProgram extends BpfDescriptor {
  readonly info: ProgramInfo;

  constructor(fd: number) {
    super(fd);
    this.info = readProgramInfo(fd);
  }
}

const PROG_INFO_BYTES = 96;
const MAX_MAPS = 16;
const LOG_BYTES = 256 * 1024;
/** Lines of the verifier that an error shows: the last ones say what it refused. */
const SHOWN_LINES = 12;

/**
 * Loads a program of type BPF_PROG_TYPE_SCHED_CLS.
 * @param name at most 15 letters
 * @param license as the kernel compares it: some helpers are for programs that may be used under the GPL only
 * @throws BpfError, with what the verifier said
 */
export function loadProgram(name: string, instructions: Uint8Array, license: string): BpfProgram {
  using memory = new ForeignMemory(instructions.byteLength + LOG_BYTES + 128);
  const attr = new BpfAttr(72)
    .u32(0, BPF_PROG_TYPE_SCHED_CLS, instructions.byteLength / INSTRUCTION_BYTES)
    .u64(8, memory.put(instructions))
    .u64(16, memory.put(new TextEncoder().encode(`${license}\0`)))
    .name(48, name);
  const what = `load the program ${name}`;
  try {
    return load(attr, what);
  } catch (error) {
    throw explained(error, what, instructions, attr, memory);
  }
}

/** As libbpf tries. */
const MOST_TRIES = 5;

function load(attr: BpfAttr, what: string): BpfProgram {
  for (let tries = 1; ; tries++) {
    try {
      return new BpfProgram(callBpf(BPF_PROG_LOAD, attr, what));
    } catch (error) {
      // The verifier gives up when a signal is pending, as of a child that ended.
      if (!(error instanceof BpfError) || error.code !== 'EAGAIN' || tries === MOST_TRIES) throw error;
    }
  }
}

/** Opens a program that is loaded. It needs CAP_SYS_ADMIN. @throws BpfError ENOENT when it is gone */
export function openProgram(id: number): BpfProgram {
  return new BpfProgram(callBpf(BPF_PROG_GET_FD_BY_ID, new BpfAttr(12).u32(0, id), `open the program ${id}`));
}

/** Loads once more with the verifier's log: writing it makes a load five times dearer. */
function explained(
  error: unknown,
  what: string,
  instructions: Uint8Array,
  attr: BpfAttr,
  memory: ForeignMemory,
): unknown {
  if (!(error instanceof BpfError) || error.code === 'EPERM' || error.code === 'ENOSYS') return error;
  const log = memory.reserve(LOG_BYTES);
  attr.u32(24, 1, LOG_BYTES).u64(32, log);
  try {
    load(attr, what).close();
    return error;
  } catch (again) {
    const text = textAt(new DataView(memory.get(log, LOG_BYTES).buffer), 0, LOG_BYTES);
    const cause = again instanceof BpfError ? again.cause : again;
    return new BpfError(what, cause, shortened(text, instructions));
  }
}

/** The last lines of the log, and the instruction that they are about as we wrote it. */
function shortened(log: string, instructions: Uint8Array): string {
  const lines = log.trimEnd().split('\n').slice(-SHOWN_LINES);
  const refused = lines.flatMap((line) => /^(\d+): /.exec(line)?.[1] ?? []).at(-1);
  const written = disassemble(instructions).find((line) => line.startsWith(`${refused}: `));
  return [...lines, ...(written === undefined ? [] : [`as written: ${written}`])].join('\n');
}

/** struct bpf_prog_info: id at 4, tag at 8, nr_map_ids at 52, map_ids at 56, name at 64. */
function readProgramInfo(fd: number): ProgramInfo {
  using memory = new ForeignMemory(MAX_MAPS * 4);
  const ids = memory.reserve(MAX_MAPS * 4);
  const info = readInfo(fd, PROG_INFO_BYTES, (fields) => fields.u32(52, MAX_MAPS).u64(56, ids));
  const count = Math.min(info.getUint32(52, true), MAX_MAPS);
  const raw = new DataView(memory.get(ids, MAX_MAPS * 4).buffer);
  return {
    id: info.getUint32(4, true),
    tag: Buffer.from(info.buffer, 8, BPF_TAG_SIZE).toString('hex'),
    name: textAt(info, 64, BPF_OBJ_NAME_LEN),
    mapIds: Array.from({ length: count }, (_, at) => raw.getUint32(at * 4, true)),
  };
}
