import { lstatSync } from 'node:fs';

/**
 * Tells one file from its successor under the same name; undefined when there is none, or it cannot be looked at. The inode
 * alone does not do: file systems give a number that was freed to the next file.
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
