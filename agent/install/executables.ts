import { createHash } from 'node:crypto';
import { constants, existsSync, type Stats, statSync } from 'node:fs';
import { chmod, copyFile, link, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { COMPLETE_PROGRAM, LAUNCHER, UNUSABLE_MARKER } from '../../cni-plugins/launcher/names.ts';
import { FileError, kindOfFile } from '../../runtime/read-regular-file.ts';

/** Names of the one packaged executable; the first is its name in the plugin folder. */
export const PLUGIN_NAMES = ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni'] as const;

/** Files beside an installed launcher: the complete program, and the marker that it does not run on this host. */
export const LAUNCHER_FILES = [COMPLETE_PROGRAM, UNUSABLE_MARKER] as const;

/**
 * Libraries that our executables load from below their own folder, and that few nodes have: Node needs libatomic. Each
 * is installed if the plugin folder has it.
 */
export const PLUGIN_LIBRARIES = ['tke-eni-lib/libatomic.so.1'] as const;

/**
 * Reference plugins of the CNI project: our conflists chain them, hybrid nodes need them, or containerd calls them
 * itself.
 */
export const REFERENCE_PLUGIN_NAMES = ['portmap', 'bandwidth', 'host-local', 'bridge', 'loopback'] as const;

/** Suffix of a file that is being written; one that exists while no installation runs is left of a crash. */
export const NEW_SUFFIX = '.tke-eni-new';

/** The files that an installation wrote, and those that it left as they were. */
type InstallReport = { readonly installed: readonly string[]; readonly kept: readonly string[] };

/** Tells whether a launcher is to be installed: `auto` where the folder of plugins has one. */
export function usesLauncher(pluginDir: string, choice: 'auto' | 'off'): boolean {
  return choice === 'auto' && existsSync(join(pluginDir, LAUNCHER));
}

/**
 * Installs our executables in `binDir`. A file is copied beside its target, synced and renamed, so that a runtime that
 * starts it at this moment gets the whole old file or the whole new one. Libraries go first, because the new executable
 * may need them. The other names are hard links: one copy on disk and in the page cache. Idempotent: an equal file is
 * left alone.
 *
 * With a launcher the names are links of the launcher, and the complete program, which it may become, is a file beside
 * it that is there first.
 * @throws the file system's own error (ENOENT when `pluginDir` lacks the executable, ENOSPC, EROFS, …).
 */
export async function installExecutables(
  pluginDir: string,
  binDir: string,
  hasLauncher = false,
): Promise<InstallReport> {
  await mkdir(binDir, { recursive: true, mode: 0o755 });
  const [main, ...aliases] = PLUGIN_NAMES;
  const installed: string[] = [];
  const kept: string[] = [];
  for (const name of PLUGIN_LIBRARIES) {
    const source = join(pluginDir, name);
    if (!existsSync(source)) continue;
    await mkdir(dirname(join(binDir, name)), { recursive: true, mode: 0o755 });
    if (await copyIfDifferent(source, join(binDir, name))) installed.push(name);
    else kept.push(name);
  }
  const target = join(binDir, main);
  const copies = hasLauncher ? [[main, COMPLETE_PROGRAM] as const, [LAUNCHER, main] as const] : [[main, main] as const];
  for (const [source, name] of copies) {
    if (await copyIfDifferent(join(pluginDir, source), join(binDir, name))) installed.push(name);
    else kept.push(name);
  }
  for (const alias of aliases) {
    const path = join(binDir, alias);
    if (isSameFile(target, path)) {
      kept.push(alias);
      continue;
    }
    await replaceBy(path, (temporary) => link(target, temporary));
    installed.push(alias);
  }
  // Last: until now a launcher might become the complete program.
  if (!hasLauncher) for (const name of LAUNCHER_FILES) await rm(join(binDir, name), { force: true });
  return { installed, kept };
}

/** Copies each reference plugin that `binDir` lacks; an existing one is someone else's choice and stays. Idempotent. */
export async function installReferencePlugins(referenceDir: string, binDir: string): Promise<InstallReport> {
  await mkdir(binDir, { recursive: true, mode: 0o755 });
  const installed: string[] = [];
  const kept: string[] = [];
  for (const name of REFERENCE_PLUGIN_NAMES) {
    const source = join(referenceDir, name);
    if (existsSync(join(binDir, name))) kept.push(name);
    else if (existsSync(source) && (await copyIfDifferent(source, join(binDir, name)))) installed.push(name);
  }
  return { installed, kept };
}

/**
 * Reads a file from end to end, so that the page cache holds it. A cold first exec of a 117 MB executable costs 100 ms;
 * after a sequential read it costs 25 ms, because the kernel then maps it in large folios.
 */
export async function warmPageCache(path: string): Promise<void> {
  // Only the reading matters.
  await readThrough(path, () => {});
}

/** Copies `source` over `target` unless they are equal. Returns whether it did. */
async function copyIfDifferent(source: string, target: string): Promise<boolean> {
  const before = statSync(target, { throwIfNoEntry: false });
  const after = statSync(source);
  assertFile(source, after);
  const sameSize = before?.size === after.size;
  if (sameSize && (await digest(source)) === (await digest(target))) return false;
  await replaceBy(target, async (temporary) => {
    await copyFile(source, temporary);
    await chmod(temporary, 0o755);
    const file = await open(temporary, 'r');
    await file.sync().finally(() => file.close());
  });
  return true;
}

async function replaceBy(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = path + NEW_SUFFIX;
  await rm(temporary, { force: true });
  try {
    await make(temporary);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Returns the SHA-256 of a file's content in hex. @throws the file system's own error */
export async function digest(path: string): Promise<string> {
  const hash = createHash('sha256');
  await readThrough(path, (chunk) => hash.update(chunk));
  return hash.digest('hex');
}

/**
 * Reads a regular file through one buffer: a stream allocates a new one for each megabyte, and they stay in memory for
 * long. The open must not wait: in the place of an executable may stand a FIFO.
 * @throws FileError; the file system's own error
 */
async function readThrough(path: string, take: (chunk: Uint8Array) => void): Promise<void> {
  const buffer = new Uint8Array(CHUNK_BYTES);
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  assertFile(path, await file.stat());
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) return;
    take(buffer.subarray(0, bytesRead));
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
