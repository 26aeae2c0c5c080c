import { createHash } from 'node:crypto';
import { constants, lstatSync, type Stats, statSync } from 'node:fs';
import { chmod, copyFile, link, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { moveAside } from '../../runtime/folder.ts';
import { FileError, kindOfFile } from '../../runtime/read-regular-file.ts';
import type { PlannedFile } from './planned-file.ts';

/** Suffix of a file that is being written; one that exists while no installation runs is left of a crash. */
export const NEW_SUFFIX = '.tke-eni-new';

/**
 * Writes a planned file: beside its place, synced and renamed, so that a runtime that starts it at this moment gets the whole
 * old file or the whole new one. A folder in its place is moved aside. Returns the inode that it wrote; undefined when that is not known.
 * @throws the file system's own error (ENOENT when there is nothing to copy, ENOSPC, EROFS, …).
 */
export async function writePlanned({ path, source, mode }: PlannedFile): Promise<bigint | undefined> {
  if (source.kind !== 'none') await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) moveAside(path);
  if (source.kind === 'none') await rm(path, { force: true });
  if (source.kind === 'text') writeFileAtomically(path, source.text, mode);
  if (source.kind === 'none' || source.kind === 'text') return undefined;
  return await replaceBy(path, async (temporary) => {
    if (source.kind === 'link') return await link(source.to, temporary);
    assertFile(source.of, statSync(source.of));
    await copyFile(source.of, temporary);
    await chmod(temporary, mode);
    const file = await open(temporary, 'r');
    await file.sync().finally(() => file.close());
  });
}

async function replaceBy(path: string, make: (temporary: string) => Promise<void>): Promise<bigint> {
  const temporary = path + NEW_SUFFIX;
  await rm(temporary, { force: true, recursive: true });
  try {
    await make(temporary);
    const { ino } = lstatSync(temporary, { bigint: true });
    await rename(temporary, path);
    return ino;
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Compares a regular file with what it is to contain. `part`: it has the beginning of it, or is empty.
 * @throws FileError; the file system's own error, also when there is nothing to compare with
 */
export async function compareContent(
  path: string,
  source: PlannedFile['source'],
): Promise<'equal' | 'part' | 'different'> {
  const stat = statSync(path);
  if (source.kind === 'none') return 'different';
  if (source.kind === 'link') return isSameFile(path, source.to) ? 'equal' : 'different';
  const wanted = source.kind === 'text' ? Buffer.from(source.text) : source.of;
  const wantedBytes = typeof wanted === 'string' ? statSync(wanted).size : wanted.length;
  if (stat.size > wantedBytes) return 'different';
  const digestOfWanted =
    typeof wanted === 'string' ? await digest(wanted, stat.size) : sha256(wanted.subarray(0, stat.size));
  if ((await digest(path)) !== digestOfWanted) return 'different';
  return stat.size === wantedBytes ? 'equal' : 'part';
}

/**
 * Reads a file from end to end, so that the page cache holds it. A cold first exec of a 117 MB executable costs 100 ms;
 * after a sequential read it costs 25 ms, because the kernel then maps it in large folios.
 */
export async function warmPageCache(path: string): Promise<void> {
  // Only the reading matters.
  await readThrough(path, () => true);
}

/** Returns the SHA-256 of a file's content, or of its first `bytes`, in hex. @throws FileError; the file system's own error */
export async function digest(path: string, bytes = Number.POSITIVE_INFINITY): Promise<string> {
  const hash = createHash('sha256');
  let left = bytes;
  await readThrough(path, (chunk) => {
    hash.update(chunk.subarray(0, Math.min(chunk.length, left)));
    left -= chunk.length;
    return left > 0;
  });
  return hash.digest('hex');
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Reports whether a file contains all of some texts. @throws FileError; the file system's own error */
export async function containsAll(path: string, texts: readonly string[]): Promise<boolean> {
  const missing = new Set(texts.map((text) => Buffer.from(text, 'latin1')));
  const overlap = Math.max(...texts.map(({ length }) => length)) - 1;
  let end = Buffer.alloc(0);
  await readThrough(path, (chunk) => {
    const window = Buffer.concat([end, chunk]);
    for (const text of missing) if (window.includes(text)) missing.delete(text);
    end = Buffer.from(window.subarray(Math.max(0, window.length - overlap)));
    return missing.size > 0;
  });
  return missing.size === 0;
}

const ELF = Buffer.from('\x7fELF', 'latin1');

/** Reports whether a file is an ELF program. @throws FileError; the file system's own error */
export async function isProgram(path: string): Promise<boolean> {
  let isElf = false;
  await readThrough(path, (chunk) => {
    isElf = ELF.equals(chunk.subarray(0, ELF.length));
    return false;
  });
  return isElf;
}

/**
 * Reads a regular file through one buffer: a stream allocates a new one for each megabyte, and they stay in memory for
 * long. The open must not wait: in the place of an executable may stand a FIFO.
 * @param take Gets each part, until it returns false.
 * @throws FileError; the file system's own error
 */
async function readThrough(path: string, take: (chunk: Uint8Array) => boolean): Promise<void> {
  const buffer = new Uint8Array(CHUNK_BYTES);
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  assertFile(path, await file.stat());
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0 || take(buffer.subarray(0, bytesRead)) === false) return;
  }
}

const CHUNK_BYTES = 1 << 20;

function assertFile(path: string, stat: Stats): void {
  if (!stat.isFile()) throw new FileError('NOT_A_FILE', path, `is ${kindOfFile(stat)}, not a regular file`);
}

function isSameFile(a: string, b: string): boolean {
  const first = statSync(a);
  const second = statSync(b, { throwIfNoEntry: false });
  return second !== undefined && first.ino === second.ino && first.dev === second.dev;
}
