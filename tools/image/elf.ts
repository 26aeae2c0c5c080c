import { closeSync, openSync } from 'node:fs';
import {
  DT_NULL,
  DT_STRSZ,
  DT_STRTAB,
  DYN_BYTES,
  findLoaded,
  readAt,
  readEhdr,
  readSegments,
  type Segment,
} from '../build/elf-file.ts';

/** What the dynamic loader is told by an executable or library. */
type ElfFacts = {
  /** Instruction set, `e_machine`: 62 x86-64, 183 AArch64. */
  readonly machine: number;
  /** Path of the loader; absent in libraries and static executables. */
  readonly interpreter?: string;
  /** Names of the libraries that must be there, `DT_NEEDED`. */
  readonly needed: readonly string[];
};

/**
 * Reads what a 64-bit little-endian ELF file needs in order to run. Reads only headers and the dynamic section.
 * @returns undefined when the file is no ELF file, a script for example.
 * @throws when it is another kind of ELF file, or damaged.
 * @see elf(5); uapi/linux/elf.h Elf64_Ehdr, Elf64_Phdr, Elf64_Dyn
 */
export function readElf(path: string): ElfFacts | undefined {
  const fd = openSync(path, 'r');
  try {
    const ehdr = readEhdr(fd, path);
    if (ehdr === undefined) return undefined;
    const segments = readSegments(fd, ehdr);
    const interp = segments.find(({ type }) => type === PT_INTERP);
    const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
    return {
      machine: ehdr.readUInt16LE(18),
      ...(interp !== undefined && { interpreter: readAt(fd, interp.offset, interp.fileBytes - 1).toString('latin1') }),
      needed: dynamic === undefined ? [] : readNeeded(path, fd, dynamic, segments),
    };
  } finally {
    closeSync(fd);
  }
}

const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NEEDED = 1;

function readNeeded(path: string, fd: number, dynamic: Segment, segments: readonly Segment[]): readonly string[] {
  const section = readAt(fd, dynamic.offset, dynamic.fileBytes);
  const names: number[] = [];
  let stringsAt = 0;
  let stringBytes = 0;
  for (let at = 0; at + DYN_BYTES <= section.length; at += DYN_BYTES) {
    const tag = Number(section.readBigInt64LE(at));
    const value = Number(section.readBigUInt64LE(at + 8));
    if (tag === DT_NULL) break;
    if (tag === DT_NEEDED) names.push(value);
    if (tag === DT_STRTAB) stringsAt = value;
    if (tag === DT_STRSZ) stringBytes = value;
  }
  // The table is named by its address in memory; its place in the file follows from the segment that holds it.
  const home = findLoaded(segments, stringsAt);
  if (home === undefined) throw new Error(`${path}: damaged ELF file: no segment holds its string table`);
  const strings = readAt(fd, stringsAt - home.address + home.offset, stringBytes);
  return names.map((start) => strings.toString('latin1', start, strings.indexOf(0, start)));
}
