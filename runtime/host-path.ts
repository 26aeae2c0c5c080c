import { lstatSync, readlinkSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';

/** Most symbolic links that the kernel follows in one look-up before it returns ELOOP. @see path_resolution(7) */
const MAX_LINKS = 40;

/**
 * Resolves a path as a process with the root `root` would, and returns it in the form that this process can open.
 *
 * Plain concatenation is not enough: `/var/run` is a link to `/run`, which would lead out of `root` again. Components
 * that do not exist stay as they are, so that opening reports ENOENT with the whole name. A path in `/proc` is returned
 * as it is: this process shares the host's PID namespace, and links in `/proc` are not real paths.
 */
export function resolveHostPath(root: string, path: string): string {
  if (root === '' || root === '/' || path.startsWith('/proc/')) return path;
  const pending = path.split('/');
  const done: string[] = [];
  let links = 0;
  for (let part = pending.shift(); part !== undefined; part = pending.shift()) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      done.pop();
      continue;
    }
    const target = links < MAX_LINKS ? linkTarget(join(root, ...done, part)) : undefined;
    if (target === undefined) {
      done.push(part);
      continue;
    }
    links++;
    if (isAbsolute(target)) done.length = 0;
    pending.unshift(...target.split('/'));
  }
  return join(root, ...done);
}

function linkTarget(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : undefined;
}
