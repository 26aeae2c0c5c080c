import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { COMPLETE_PROGRAM } from '../../cni-plugins/launcher/names.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { kindOfFile } from '../../runtime/read-regular-file.ts';

/** Whether an executable runs on the host. `unknown`: it could not be tried; that does not count as a failure. */
type Trial =
  | { readonly kind: 'runs' }
  | { readonly kind: 'fails'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

/** Timeout of a trial. A start takes some 30 ms; a node that boots is slow. */
const TRIAL_MS = 10_000;
/** Maximum length of a message, characters: the loader prints a line for each version that is missing. */
const MAX_CHARS = 500;

/**
 * Runs a CNI executable as the container runtime would: with the host's root, and so with the host's libraries, which
 * differ from those of this container. It is asked for its release, which changes nothing, and which no launcher
 * answers. Only a message of the loader counts as a failure. Never rejects.
 * @param hostRoot The host's root, as a path of this mount namespace.
 * @param path Path of the executable, here and on the host.
 * @see unshare(1) --root; CNI SPEC, "VERSION"
 */
export async function tryOnHost(hostRoot: string, path: string): Promise<Trial> {
  try {
    if (!isSameFile(path, resolveHostPath(hostRoot, path))) {
      return { kind: 'unknown', why: `${path} on the host is another file than here` };
    }
  } catch (error) {
    return { kind: 'unknown', why: messageOf(error) };
  }
  const { code, output } = await runOnHost(hostRoot, path);
  if (code === 0) return { kind: 'runs' };
  const missing = output.includes(COMPLETE_CANNOT_RUN) ? whyNotComplete(dirname(path)) : missingOf(output, path);
  return missing === '' ? { kind: 'unknown', why: output } : { kind: 'fails', why: missing };
}

/**
 * Extracts from the output of a start what the loader misses; '' when the loader printed nothing of the kind.
 * @see ld.so(8); glibc elf/dl-load.c, elf/dl-version.c
 */
export function missingOf(output: string, path: string): string {
  const lines = output.split('\n').flatMap((line) => {
    const library = /error while loading shared libraries: (.*)$/.exec(line)?.[1];
    const version = /([^/\s]+): (version `[^']+' not found)/.exec(line);
    return library ?? (version === null ? [] : `${version[1]}: ${version[2]}`);
  });
  // The file exists, so the missing one is the loader that it names. @see execve(2)
  const isLoaderMissing = [`failed to execute ${path}: No such file`, `spawn ${path} ENOENT`];
  if (isLoaderMissing.some((text) => output.includes(text))) lines.push(NO_LOADER);
  return [...new Set(lines)].join('; ').slice(0, MAX_CHARS);
}

const NO_LOADER = 'its loader (ld-linux) is not there: no glibc';

/** Returns why a launcher in a folder cannot become the complete program beside it. */
function whyNotComplete(dir: string): string {
  const path = join(dir, COMPLETE_PROGRAM);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined)
    return `there is no ${path}, the complete program that the launcher needs: --plugin-dir has a launcher under the names of the executables and not the executables`;
  if (!stat.isFile()) return `${path} is ${kindOfFile(stat)}`;
  return (stat.mode & MAY_RUN) === 0 ? `${path} is not executable` : NO_LOADER;
}

const MAY_RUN = 0o111;

/**
 * Runs an executable with `--version`, with the host's root. Returns its exit code, or 1 when it did not run, and what it printed.
 * Never rejects.
 */
export function runOnHost(hostRoot: string, path: string): Promise<{ readonly code: number; readonly output: string }> {
  const isHere = hostRoot === '' || hostRoot === '/';
  return runVersion(isHere ? [path, '--version'] : ['unshare', `--root=${hostRoot}`, path, '--version']);
}

/** What the launcher prints when execve(2) fails. @see launcher.c become_complete */
const COMPLETE_CANNOT_RUN = 'beside this executable cannot be run';

function runVersion([file = '', ...args]: readonly string[]): Promise<{
  readonly code: number;
  readonly output: string;
}> {
  return new Promise((resolve) => {
    const env = { CNI_COMMAND: 'VERSION', LC_ALL: 'C', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
    try {
      const child = execFile(file, args, { env, timeout: TRIAL_MS, encoding: 'utf8' }, (error, stdout, stderr) => {
        if (error === null) resolve({ code: 0, output: stdout.trim().slice(0, MAX_CHARS) });
        else resolve({ code: 1, output: `${stderr.trim() || stdout.trim() || error.message}`.slice(0, 4 * MAX_CHARS) });
      });
      // An executable that the loader refuses ends without reading.
      child.stdin?.on('error', () => {});
      child.stdin?.end('{"cniVersion":"1.0.0"}');
    } catch (error) {
      resolve({ code: 1, output: messageOf(error) });
    }
  });
}

function isSameFile(a: string, b: string): boolean {
  const [first, second] = [statSync(a), statSync(b)];
  return first.ino === second.ino && first.dev === second.dev;
}
