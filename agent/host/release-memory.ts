import { readFileSync, readlinkSync } from 'node:fs';
import { madvise, trimMalloc } from '../../netlink/libc.ts';

/** A range of this process's memory. */
type Mapping = { readonly address: number; readonly bytes: number };

const MADV_DONTNEED = 4;

/**
 * Returns unused memory to the kernel: free memory of malloc, and the pages of `dropStartPages`. Takes a few
 * milliseconds.
 * @throws LibcError, and what reading /proc throws
 */
export function releaseMemory(): void {
  trimMalloc();
  dropStartPages();
}

/**
 * Drops the pages of our own executable that the start has touched: 50 to 70 MiB of Node's code and tables, of which a
 * running agent uses a third. The kernel keeps them in its page cache and maps those that are used again, some hundred
 * faults of a few microseconds. Safe at any moment, from any thread, and idempotent: see `cleanMappings`.
 * @returns how many bytes were resident. @throws LibcError, and what reading /proc throws. @see madvise(2)
 * MADV_DONTNEED
 */
export function dropStartPages(): number {
  const mappings = cleanMappings(readFileSync('/proc/self/smaps', 'utf8'), readlinkSync('/proc/self/exe'));
  for (const { address, bytes } of mappings) madvise(address, bytes, MADV_DONTNEED);
  return mappings.reduce((sum, { residentBytes }) => sum + residentBytes, 0);
}

/**
 * Finds, in the text of /proc/PID/smaps, private mappings of `file` that contain only what the file contains: not
 * writable, and no page of them was ever written or swapped. RELRO is read-only now but was written by the loader, and
 * so has such pages; dropping one would bring back pointers that were never relocated. @see proc_pid_smaps(5)
 */
export function cleanMappings(smaps: string, file: string): readonly (Mapping & { readonly residentBytes: number })[] {
  return smaps.split(NEXT_MAPPING).flatMap((text) => {
    const header = HEADER.exec(text);
    if (header === null) return [];
    const [, from = '', to = '', path] = header;
    const field = (name: string): number =>
      Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? Number.NaN);
    // On a kernel that lacks the field this is NaN, which is not zero either.
    if (path !== file || field('Anonymous') !== 0 || field('Swap') !== 0) return [];
    const address = Number.parseInt(from, 16);
    return [{ address, bytes: Number.parseInt(to, 16) - address, residentBytes: field('Rss') * 1024 }];
  });
}

const NEXT_MAPPING = /^(?=[0-9a-f]+-[0-9a-f]+ )/m;
/** Header of a mapping that is private, readable or executable, and not writable. */
const HEADER = /^([0-9a-f]+)-([0-9a-f]+) r-[-x]p [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ \d+ +(.+)$/m;
