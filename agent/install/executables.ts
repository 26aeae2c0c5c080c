import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { chmod, copyFile, link, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The one packaged file and the names that it answers to; the first is the file in the plugin folder. */
export const PLUGIN_NAMES = ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni'] as const;

/**
 * Libraries that our executables look for below their own folder, and that few nodes have: Node needs libatomic. Each is
 * installed where the plugin folder has it.
 */
export const PLUGIN_LIBRARIES = ['tke-eni-lib/libatomic.so.1'] as const;

/** Reference plugins of the CNI project that our conflists chain, that hybrid nodes need, or that containerd calls itself. */
export const REFERENCE_PLUGIN_NAMES = ['portmap', 'bandwidth', 'host-local', 'bridge', 'loopback'] as const;

/** Ends the name of a file that is being written; one that is there while nobody installs is a crash's. */
export const NEW_SUFFIX = '.tke-eni-new';

/** What an installation did. */
export type InstallReport = { readonly installed: readonly string[]; readonly kept: readonly string[] };

/**
 * Puts our executables into `binDir`: copied beside, synced, renamed, so that a runtime that execs at this moment gets
 * the old file or the new one whole; libraries first, for the new one may need them. The other names are hard links: one copy on disk and in the page cache. Idempotent:
 * an equal file is left alone.
 * @throws the file system's own error (ENOENT when `pluginDir` lacks the executable, ENOSPC, EROFS, …).
 */
export async function installExecutables(pluginDir: string, binDir: string): Promise<InstallReport> {
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
  if (await copyIfDifferent(join(pluginDir, main), target)) installed.push(main);
  else kept.push(main);
  for (const alias of aliases) {
    const path = join(binDir, alias);
    if (isSameFile(target, path)) {
      kept.push(alias);
      continue;
    }
    await replaceBy(path, (temporary) => link(target, temporary));
    installed.push(alias);
  }
  return { installed, kept };
}

/** Copies each reference plugin that `binDir` lacks; one that is there is somebody's choice and stays. Idempotent. */
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
 * Reads a file from end to end and drops what it read. A cold first exec of a 117 MB executable costs 100 ms; read
 * sequentially beforehand it costs 25 ms, for the kernel then maps it in large folios.
 */
export async function warmPageCache(path: string): Promise<void> {
  // Reading is the point.
  await readThrough(path, () => {});
}

/** Copies `source` over `target` unless they are equal. Returns whether it did. */
async function copyIfDifferent(source: string, target: string): Promise<boolean> {
  const before = statSync(target, { throwIfNoEntry: false });
  const after = statSync(source);
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

/** Digests a file's content. @throws the file system's own error */
export async function digest(path: string): Promise<string> {
  const hash = createHash('sha256');
  await readThrough(path, (chunk) => hash.update(chunk));
  return hash.digest('hex');
}

/** One buffer for all of it: a stream makes a new one for each megabyte, and the agent's memory shows them for long. */
async function readThrough(path: string, take: (chunk: Uint8Array) => void): Promise<void> {
  const buffer = new Uint8Array(CHUNK_BYTES);
  await using file = await open(path, 'r');
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) return;
    take(buffer.subarray(0, bytesRead));
  }
}

const CHUNK_BYTES = 1 << 20;

function isSameFile(a: string, b: string): boolean {
  const first = statSync(a);
  const second = statSync(b, { throwIfNoEntry: false });
  return second !== undefined && first.ino === second.ino && first.dev === second.dev;
}
