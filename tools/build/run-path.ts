import { closeSync, openSync, writeSync } from 'node:fs';
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
} from './elf-file.ts';

/**
 * Gives an executable a run path: a folder in which the loader looks for libraries first; `$ORIGIN` in it stands for the
 * executable's own folder. Writes into room that the file has already (the end of a page after its string table, spare
 * entries of its dynamic section), so that nothing moves and its size stays. A file that has this path already is left.
 * @throws when the file is no such ELF file, has another run path, or lacks the room; it is then unchanged.
 * @see ld.so(8); elf(5); uapi/linux/elf.h Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Dyn
 */
export function setRunPath(path: string, runPath: string): void {
  const fd = openSync(path, 'r+');
  try {
    const ehdr = readEhdr(fd, path);
    if (ehdr === undefined) throw new Error(`${path}: no 64-bit little-endian ELF file`);
    const dynamic = findDynamic(fd, ehdr, path);
    const home = findHome(fd, ehdr, dynamic, path);
    const text = Buffer.from(`${runPath}\0`);
    if (dynamic.runPath !== undefined) {
      const at = home.offset + (dynamic.strings - home.address) + dynamic.runPath;
      if (readAt(fd, at, text.length).equals(text)) return;
      throw new Error(`${path}: has another run path already`);
    }
    const end = home.offset + home.fileBytes;
    const room = readAt(fd, end, Math.ceil(end / PAGE_BYTES) * PAGE_BYTES - end);
    if (room.length < text.length || room.some((byte) => byte !== 0)) {
      throw new Error(`${path}: no room for a run path of ${text.length} bytes behind its string table`);
    }
    writeAt(fd, end, text);
    // What is loaded ends behind the text, and so does the string table: whoever checks bounds finds it inside.
    const size = u64(home.fileBytes + text.length);
    writeAt(fd, home.headerAt + 32, Buffer.concat([size, size]));
    const textAt = home.address + home.fileBytes - dynamic.strings;
    writeAt(fd, dynamic.stringBytesAt + 8, u64(textAt + text.length));
    writeAt(fd, dynamic.endAt, Buffer.concat([u64(DT_RUNPATH), u64(textAt)]));
  } finally {
    closeSync(fd);
  }
}

const SHT_DYNAMIC = 6;
const DT_RPATH = 15;
const DT_RUNPATH = 29;
/** The smallest that there is: the rest of a bigger one need not be mapped. */
const PAGE_BYTES = 4096;

type Dynamic = {
  /** Address of the string table. */
  readonly strings: number;
  /** Place in the file of the entry that has its size. */
  readonly stringBytesAt: number;
  /** Place in the file of the entry that ends the list; one more fits behind it. */
  readonly endAt: number;
  /** Place in the string table of the run path that there is. */
  readonly runPath: number | undefined;
};

/** By its section: the segment's size need not tell of spare entries, and pkg's tools take it down to those in use. */
function findDynamic(fd: number, ehdr: Buffer, path: string): Dynamic {
  const [start, entryBytes, count] = [Number(ehdr.readBigUInt64LE(40)), ehdr.readUInt16LE(58), ehdr.readUInt16LE(60)];
  const table = readAt(fd, start, entryBytes * count);
  const section = Array.from({ length: count }, (_, index) => table.subarray(index * entryBytes)).find(
    (shdr) => shdr.readUInt32LE(4) === SHT_DYNAMIC,
  );
  if (section === undefined) throw new Error(`${path}: is not dynamically linked`);
  const [offset, bytes] = [Number(section.readBigUInt64LE(24)), Number(section.readBigUInt64LE(32))];
  const content = readAt(fd, offset, bytes);
  const entries = Array.from({ length: Math.floor(content.length / DYN_BYTES) }, (_, index) => ({
    at: offset + index * DYN_BYTES,
    tag: Number(content.readBigInt64LE(index * DYN_BYTES)),
    value: Number(content.readBigUInt64LE(index * DYN_BYTES + 8)),
  }));
  const [end, spare] = entries.slice(entries.findIndex(({ tag }) => tag === DT_NULL));
  const strings = entries.find(({ tag }) => tag === DT_STRTAB);
  const stringBytes = entries.find(({ tag }) => tag === DT_STRSZ);
  if (end === undefined || spare === undefined || spare.tag !== DT_NULL) {
    throw new Error(`${path}: its dynamic section has no spare entry`);
  }
  if (strings === undefined || stringBytes === undefined) throw new Error(`${path}: has no string table`);
  const runPath = entries.find(({ tag }) => tag === DT_RUNPATH || tag === DT_RPATH)?.value;
  return { strings: strings.value, stringBytesAt: stringBytes.at, endAt: end.at, runPath };
}

/** Finds the segment that the string table is loaded with. */
function findHome(fd: number, ehdr: Buffer, { strings }: Dynamic, path: string): Segment {
  const home = findLoaded(readSegments(fd, ehdr), strings);
  if (home === undefined || home.memoryBytes !== home.fileBytes) {
    throw new Error(`${path}: no segment holds its string table and nothing but what is in the file`);
  }
  return home;
}

function u64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}

function writeAt(fd: number, position: number, bytes: Buffer): void {
  if (writeSync(fd, bytes, 0, bytes.length, position) !== bytes.length) throw new Error('write cut short');
}
