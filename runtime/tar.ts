import { closeSync, openSync, readSync, statSync } from 'node:fs';

/** One entry of a tar archive; paths are relative and without a slash at the end. */
export type TarEntry =
  | { readonly kind: 'file'; readonly path: string; readonly content: Uint8Array; readonly mode?: number }
  /** A file of this machine, read when the archive is written. */
  | { readonly kind: 'copy'; readonly path: string; readonly source: string; readonly mode?: number }
  /** A file that is an archive itself. */
  | { readonly kind: 'archive'; readonly path: string; readonly entries: readonly TarEntry[] }
  | { readonly kind: 'folder'; readonly path: string; readonly mode?: number }
  | { readonly kind: 'symlink'; readonly path: string; readonly target: string }
  /**
   * A hard link to a file that precedes it. `mode` must equal the mode of that file, because unpacking sets it again.
   */
  | { readonly kind: 'link'; readonly path: string; readonly target: string; readonly mode: number };

/**
 * Packs entries in the POSIX ustar format, in the given order, owned by root. Equal entries give equal bytes. Yields
 * chunks of at most 1 MiB, so that large files need little memory.
 * @param mtimeS time of all entries, seconds since 1970.
 * @throws when a name is longer than 100 bytes, or a file cannot be read or changes its size meanwhile.
 * @see pax(1), "ustar Interchange Format"
 */
export function* tarChunks(entries: readonly TarEntry[], mtimeS = 0): Generator<Uint8Array> {
  for (const entry of entries) {
    const size = sizeOf(entry);
    yield header(entry, size, mtimeS);
    yield* contentOf(entry, size, mtimeS);
    yield new Uint8Array(paddingOf(size));
  }
  // Two empty blocks end an archive.
  yield new Uint8Array(2 * BLOCK);
}

/** Packs entries in memory. @see tarChunks */
export function tar(entries: readonly TarEntry[], mtimeS = 0): Buffer {
  return Buffer.concat([...tarChunks(entries, mtimeS)]);
}

/** Counts the bytes that `tarChunks` will yield. */
export function tarSize(entries: readonly TarEntry[]): number {
  return entries.reduce((total, entry) => total + BLOCK + paddedSize(sizeOf(entry)), 2 * BLOCK);
}

const BLOCK = 512;
const CHUNK_BYTES = 1 << 20;
const NAME_BYTES = 100;
const TYPE = { file: '0', copy: '0', archive: '0', link: '1', symlink: '2', folder: '5' } as const;
const DEFAULT_MODE: Readonly<Record<TarEntry['kind'], number>> = {
  file: 0o644,
  copy: 0o644,
  archive: 0o644,
  link: 0o644,
  symlink: 0o777,
  folder: 0o755,
};

function sizeOf(entry: TarEntry): number {
  switch (entry.kind) {
    case 'file':
      return entry.content.length;
    case 'copy':
      return statSync(entry.source).size;
    case 'archive':
      return tarSize(entry.entries);
    case 'folder':
    case 'symlink':
    case 'link':
      return 0;
  }
}

function* contentOf(entry: TarEntry, size: number, mtimeS: number): Generator<Uint8Array> {
  if (entry.kind === 'file') yield entry.content;
  if (entry.kind === 'copy') yield* readChunks(entry.source, size);
  if (entry.kind === 'archive') yield* tarChunks(entry.entries, mtimeS);
}

function* readChunks(path: string, size: number): Generator<Uint8Array> {
  const fd = openSync(path, 'r');
  try {
    for (let left = size; left > 0; ) {
      const chunk = new Uint8Array(Math.min(left, CHUNK_BYTES));
      const count = readSync(fd, chunk);
      if (count === 0) throw new Error(`${path}: became shorter than ${size} bytes while it was packed; try again`);
      left -= count;
      yield chunk.subarray(0, count);
    }
  } finally {
    closeSync(fd);
  }
}

function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

function paddedSize(size: number): number {
  return size + paddingOf(size);
}

function header(entry: TarEntry, size: number, mtimeS: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const path = entry.kind === 'folder' ? `${entry.path}/` : entry.path;
  const target = entry.kind === 'symlink' || entry.kind === 'link' ? entry.target : '';
  for (const name of [path, target]) {
    if (Buffer.byteLength(name) > NAME_BYTES) throw new Error(`${name}: longer than the 100 bytes of a ustar name`);
  }
  const mode = ('mode' in entry ? entry.mode : undefined) ?? DEFAULT_MODE[entry.kind];
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  block.write(path, 0);
  block.write(octal(mode, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(mtimeS, 12), 136);
  // The checksum counts its own field as spaces.
  block.write('        ', 148);
  block.write(TYPE[entry.kind], 156);
  block.write(target, 157);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}
