import { closeSync, openSync, readSync } from 'node:fs';

/** What the dynamic loader is told by an executable or library. */
export type ElfFacts = {
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
    const ehdr = readAt(fd, 0, 64);
    if (ehdr.length < 64 || ehdr.readUInt32BE(0) !== MAGIC) return undefined;
    if (ehdr[4] !== ELFCLASS64 || ehdr[5] !== ELFDATA2LSB) {
      throw new Error(`${path}: no 64-bit little-endian ELF file; there is no image for other machines`);
    }
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

const MAGIC = 0x7f454c46;
const ELFCLASS64 = 2;
const ELFDATA2LSB = 1;
const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NULL = 0;
const DT_NEEDED = 1;
const DT_STRTAB = 5;
const DT_STRSZ = 10;

type Segment = {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly fileBytes: number;
};

function readSegments(fd: number, ehdr: Buffer): readonly Segment[] {
  const start = Number(ehdr.readBigUInt64LE(32));
  const entryBytes = ehdr.readUInt16LE(54);
  const count = ehdr.readUInt16LE(56);
  const table = readAt(fd, start, entryBytes * count);
  return Array.from({ length: count }, (_, index) => {
    const phdr = table.subarray(index * entryBytes);
    return {
      type: phdr.readUInt32LE(0),
      offset: Number(phdr.readBigUInt64LE(8)),
      address: Number(phdr.readBigUInt64LE(16)),
      fileBytes: Number(phdr.readBigUInt64LE(32)),
    };
  });
}

function readNeeded(path: string, fd: number, dynamic: Segment, segments: readonly Segment[]): readonly string[] {
  const section = readAt(fd, dynamic.offset, dynamic.fileBytes);
  const names: number[] = [];
  let stringsAt = 0;
  let stringBytes = 0;
  for (let at = 0; at + 16 <= section.length; at += 16) {
    const tag = Number(section.readBigInt64LE(at));
    const value = Number(section.readBigUInt64LE(at + 8));
    if (tag === DT_NULL) break;
    if (tag === DT_NEEDED) names.push(value);
    if (tag === DT_STRTAB) stringsAt = value;
    if (tag === DT_STRSZ) stringBytes = value;
  }
  // The table is named by its address in memory; its place in the file follows from the segment that holds it.
  const home = segments.find(
    ({ type, address, fileBytes }) => type === PT_LOAD && stringsAt >= address && stringsAt < address + fileBytes,
  );
  if (home === undefined) throw new Error(`${path}: damaged ELF file: no segment holds its string table`);
  const strings = readAt(fd, stringsAt - home.address + home.offset, stringBytes);
  return names.map((start) => strings.toString('latin1', start, strings.indexOf(0, start)));
}

function readAt(fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(fd, buffer, 0, length, position));
}
