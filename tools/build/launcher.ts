import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RUN_METHOD } from '../../agent/api/service.ts';
import { parseBackend } from '../../cni-plugins/client/backend.ts';
import { encodeOpening } from '../../cni-plugins/client/exchange.ts';
import { COMPLETE_PROGRAM, LAUNCHER, UNUSABLE_MARKER } from '../../cni-plugins/launcher/names.ts';
import { DEFAULT_BACKEND } from '../../cni-plugins/skel/conf.ts';

/** What a build of the launcher led to. */
type LauncherBuild = 'made' | 'unchanged' | { readonly missing: string };

/** Where it is built. */
type LauncherPlace = { readonly root: string; readonly binDir: string; readonly cacheDir: string };

/**
 * Compiles the launcher for this machine's architecture with the system's C compiler. Without a compiler nothing is
 * made. Does nothing when sources, options and compiler are those of the last build.
 * @throws Error with the compiler's messages
 */
export async function buildLauncher({ root, binDir, cacheDir }: LauncherPlace): Promise<LauncherBuild> {
  const folder = join(root, 'cni-plugins', 'launcher');
  const sources = ['launcher.c', 'system-call.h'].map((name) => join(folder, name));
  const compiler = await compilerVersion(COMPILER);
  if (compiler === undefined) return { missing: COMPILER };
  const flags = [...COMPILER_FLAGS, ...launcherConstants()];
  const hash = createHash('sha256').update([compiler, ...flags].join('\0'));
  for (const source of sources) hash.update(readFileSync(source));
  const stamp = hash.digest('hex');
  const stampPath = join(cacheDir, `${LAUNCHER}.sha256`);
  const output = join(binDir, LAUNCHER);
  if (existsSync(output) && existsSync(stampPath) && readFileSync(stampPath, 'utf8') === stamp) return 'unchanged';
  await mkdir(binDir, { recursive: true });
  await mkdir(cacheDir, { recursive: true });
  const made = join(cacheDir, LAUNCHER);
  await compileLauncher(COMPILER, flags, join(folder, 'launcher.c'), made);
  await rename(made, output);
  await writeFile(stampPath, stamp);
  return 'made';
}

/** Compiles the launcher into a file. @throws Error with the compiler's messages */
export async function compileLauncher(
  compiler: string,
  flags: readonly string[],
  source: string,
  output: string,
): Promise<void> {
  try {
    await run(compiler, [...flags, '-o', output, source]);
  } catch (cause) {
    const said = cause instanceof Error && 'stderr' in cause ? String(cause.stderr) : String(cause);
    throw new Error(`${compiler} failed on ${source}:\n${said}`, { cause });
  }
}

/** Returns the first line of a compiler's version; undefined when there is no such compiler. */
export async function compilerVersion(compiler: string): Promise<string | undefined> {
  try {
    return (await run(compiler, ['--version'])).stdout.split('\n')[0];
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Renders the constants that the source expects, as options of the compiler. */
export function launcherConstants(): readonly string[] {
  const backend = parseBackend(DEFAULT_BACKEND);
  if (backend?.kind !== 'unix') throw new Error(`${DEFAULT_BACKEND} is no unix socket`);
  const opening = encodeOpening({ path: RUN_METHOD.path, userAgent: 'tke-eni-launcher', timeoutMs: MAX_CALL_MS });
  return [
    `-DDEFAULT_SOCKET="${backend.path}"`,
    `-DCOMPLETE="${COMPLETE_PROGRAM}"`,
    `-DUNUSABLE="${UNUSABLE_MARKER}"`,
    `-DOPENING=${[...opening].join()}`,
  ];
}

const COMPILER = 'gcc';

/** The launcher's own limit for the longest calls: it ends the call by closing the connection. */
const MAX_CALL_MS = 65_000;

/** Static, without a C library and without anything that one provides. */
export const COMPILER_FLAGS = [
  '-Os',
  '-std=gnu11',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-static',
  '-nostdlib',
  '-ffreestanding',
  '-fno-builtin',
  // memcpy is the launcher's own: its loop must not become a call of itself.
  '-fno-tree-loop-distribute-patterns',
  '-fno-stack-protector',
  '-fno-asynchronous-unwind-tables',
  '-fno-pie',
  '-no-pie',
  '-s',
  '-Wl,--build-id=none',
  '-Wl,-z,noexecstack',
] as const;

const run = promisify(execFile);
