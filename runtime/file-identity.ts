import { lstatSync } from 'node:fs';

/**
 * Identifies a file, to distinguish it from a later one of the same name; undefined when there is none, or it
 * cannot be read. The inode number alone is not enough: file systems give a freed number to the next file.
 * @see statx(2) stx_btime
 */
export function fileIdentity(path: string): string | undefined {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stat === undefined ? undefined : `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
  } catch {
    return undefined;
  }
}
