import { readSync } from 'node:fs';

/** One entry of the program header table. */
export type Segment = {
  /** Place of the entry itself in the file. */
  readonly headerAt: number;
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly fileBytes: number;
  readonly memoryBytes: number;
};

/** Kind of a segment that is loaded. @see uapi/linux/elf.h */
const PT_LOAD = 1;

/** Ends the dynamic section. @see uapi/linux/elf.h */
export const DT_NULL = 0;
/** Names the address of the string table. @see uapi/linux/elf.h */
export const DT_STRTAB = 5;
/** Names the bytes of the string table. @see uapi/linux/elf.h */
export const DT_STRSZ = 10;

/** Bytes of an entry of the dynamic section, `Elf64_Dyn`. */
export const DYN_BYTES = 16;

const EHDR_BYTES = 64;
const MAGIC = 0x7f454c46;
/** ELFCLASS64, ELFDATA2LSB. */
const CLASS64_LSB = 0x0201;

/**
 * Reads the header of an ELF file.
 * @returns undefined when it is no ELF file.
 * @throws when it is not a 64-bit little-endian one.
 * @see uapi/linux/elf.h Elf64_Ehdr
 */
export function readEhdr(fd: number, path: string): Buffer | undefined {
  const ehdr = readAt(fd, 0, EHDR_BYTES);
  if (ehdr.length < EHDR_BYTES || ehdr.readUInt32BE(0) !== MAGIC) return undefined;
  if (ehdr.readUInt16BE(4) !== CLASS64_LSB)
    throw new Error(`${path}: no 64-bit little-endian ELF file; there is no image for other machines`);
  return ehdr;
}

/** Reads the program header table that an ELF header leads to. @see uapi/linux/elf.h Elf64_Phdr */
export function readSegments(fd: number, ehdr: Buffer): readonly Segment[] {
  const [start, entryBytes, count] = [Number(ehdr.readBigUInt64LE(32)), ehdr.readUInt16LE(54), ehdr.readUInt16LE(56)];
  const table = readAt(fd, start, entryBytes * count);
  return Array.from({ length: count }, (_, index) => {
    const phdr = table.subarray(index * entryBytes);
    return {
      headerAt: start + index * entryBytes,
      type: phdr.readUInt32LE(0),
      offset: Number(phdr.readBigUInt64LE(8)),
      address: Number(phdr.readBigUInt64LE(16)),
      fileBytes: Number(phdr.readBigUInt64LE(32)),
      memoryBytes: Number(phdr.readBigUInt64LE(40)),
    };
  });
}

/** Finds the segment with which an address is loaded from the file. */
export function findLoaded(segments: readonly Segment[], at: number): Segment | undefined {
  return segments.find(({ type, address, fileBytes }) => type === PT_LOAD && at >= address && at < address + fileBytes);
}

/** Reads bytes at a place of a file; fewer where it ends. */
export function readAt(fd: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  return buffer.subarray(0, readSync(fd, buffer, 0, length, position));
}
