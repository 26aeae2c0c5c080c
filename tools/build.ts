/**
 * Makes the executables in dist/bin, offline, from the sources and what npm installed:
 * `node tools/build.ts [NAME]...`, all without an argument. What did not change is left alone.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { installExecutables } from '../agent/install/install-executables.ts';
import { LAUNCHER } from '../cni-plugins/launcher/names.ts';
import { bundle, type Compile, FFI_FILE } from './build/bundle.ts';
import { type BuildPlace, makeExecutable } from './build/executable.ts';
import { buildLauncher } from './build/launcher.ts';
import { withLock } from './build/lock.ts';
import { describeRelease } from './build/release.ts';
import { findLibraries } from './image/libraries.ts';

/** Lists what there is to build. One architecture at a time: the machine's own, for the code cache is made by running it. */
export const EXECUTABLES = {
  'tke-route-eni': {
    entry: 'cni-plugins/main.ts',
    links: ['tke-eni-ipamc', 'tke-direct-eni'],
    compile: 'eager',
    execArgv: [],
    libraries: ['libatomic.so.1'],
  },
  // 1 MiB instead of 16: what an ADD leaves behind is little and dies young. 7 to 10 MiB less, at the same CPU time.
  'tke-eni-agent': {
    ...{ entry: 'agent/main.ts', links: [], compile: 'lazy', libraries: [] },
    execArgv: ['--max-semi-space-size=1'],
  },
  'tke-eni': {
    entry: 'cli/main.ts',
    links: [],
    compile: 'split',
    // DEP0040, DEP0169: as with ipamd. No collection while a command loads, and no threads that wait for work: 5 ms of CPU time.
    execArgv: ['--disable-warning=DEP0040', '--disable-warning=DEP0169', '--min-semi-space-size=8', '--v8-pool-size=0'],
    // People copy it to nodes, which may lack it.
    libraries: ['libatomic.so.1'],
    onDemand: ['@grpc/grpc-js', '@kubernetes/client-node', 'tencentcloud-sdk-nodejs', 'undici', 'yaml'],
  },
  'tke-eni-ipamd': {
    entry: 'ipamd/main.ts',
    links: [],
    compile: 'lazy',
    libraries: [],
    // DEP0040, DEP0169: the SDK brings a fetch that still asks for Node's own punycode and url.parse.
    execArgv: ['--max-semi-space-size=2', '--disable-warning=DEP0040', '--disable-warning=DEP0169'],
  },
  'tke-cloud-controller-manager': {
    entry: 'cloud-controller-manager/main.ts',
    links: [],
    compile: 'lazy',
    libraries: [],
    // DEP0040, DEP0169: as with ipamd.
    execArgv: ['--max-semi-space-size=1', '--disable-warning=DEP0040', '--disable-warning=DEP0169'],
  },
  'tke-eni-ip-scheduler': {
    ...{ entry: 'scheduler/main.ts', links: [], compile: 'lazy', libraries: [] },
    // 4 MiB instead of 16: 80 MiB less with 5,000 nodes, at no more CPU time. What a request leaves behind dies young.
    execArgv: ['--max-semi-space-size=4'],
  },
  'tke-eni-ip-webhook': {
    ...{ entry: 'webhook/main.ts', links: [], compile: 'lazy', libraries: [] },
    execArgv: ['--max-semi-space-size=1'],
  },
} as const satisfies Readonly<Record<string, ExecutableSource>>;

type ExecutableSource = {
  readonly entry: string;
  readonly links: readonly string[];
  readonly compile: Compile;
  readonly execArgv: readonly string[];
  /** Libraries that go along with it, in a folder of their own beside it: those that Node needs and few systems have. */
  readonly libraries: readonly string[];
  /** Packages that it loads only when it needs them; none by default. */
  readonly onDemand?: readonly string[];
};

/** Is the name of one executable. */
export type ExecutableName = keyof typeof EXECUTABLES;

/**
 * Builds the named executables where they are out of date; looks once in the life of a process, for a look costs as much
 * as bundling, and not at all where BUILT_VARIABLE is set. Safe to call from several processes at once.
 */
export async function buildExecutables(
  names: readonly ExecutableName[],
  report: (line: string) => void = () => {},
): Promise<{ readonly binDir: string }> {
  if (process.env[BUILT_VARIABLE] !== undefined) return { binDir: BIN_DIR };
  return withLock(join(CACHE_DIR, 'lock.db'), async () => {
    for (const name of names.filter((candidate) => !built.has(candidate))) {
      const startedMs = performance.now();
      const release = await build(name);
      built.add(name);
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
      report(`${join(BIN_DIR, name)}: ${release}, ${seconds} s`);
    }
    if (names.includes('tke-route-eni') && !isLauncherBuilt) {
      const made = await buildLauncher({ root: ROOT, binDir: BIN_DIR, cacheDir: CACHE_DIR });
      isLauncherBuilt = true;
      // As the agent's installer lays them out on a node.
      if (typeof made === 'string') await installExecutables(BIN_DIR, CNI_DIR, true);
      const outcome =
        typeof made === 'string' ? made : `not made, there is no ${made.missing}: calls of the runtime start Node`;
      report(`${join(BIN_DIR, LAUNCHER)}: ${outcome}`);
    }
    return { binDir: BIN_DIR };
  });
}

/** Builds all executables that are out of date. @see buildExecutables */
export async function buildAll(report: (line: string) => void): Promise<void> {
  await buildExecutables(NAMES, report);
}

/** Names the variable by which a program that built all tells those it starts that there is nothing to build. */
export const BUILT_VARIABLE = 'TKE_ENI_BUILT';

const NAMES = Object.keys(EXECUTABLES) as readonly ExecutableName[];
const built = new Set<ExecutableName>();
let isLauncherBuilt = false;

const ROOT = join(import.meta.dirname, '..');
const BIN_DIR = join(ROOT, 'dist', 'bin');
/** Folder with the CNI executables and their launcher, laid out as on a node; absent without a C compiler. */
export const CNI_DIR = join(ROOT, 'dist', 'cni');
/** Below the folder of executables; the agent installs it under the same name (`agent/install/install-executables.ts`). */
const LIBRARY_FOLDER = 'tke-eni-lib';
const CACHE_DIR = join(ROOT, 'dist', '.cache');

async function build(name: ExecutableName): Promise<string> {
  const { entry, links, compile, execArgv, libraries, onDemand }: ExecutableSource = EXECUTABLES[name];
  // First to learn the sources, then, knowing their release, in earnest: bundling takes some 50 ms.
  const { sources } = await bundle(ROOT, entry, '', compile, onDemand);
  const release = await describeRelease(ROOT, sources);
  const { code, needsFfi, assets, scripts } = await bundle(ROOT, entry, release, compile, onDemand);
  const place: BuildPlace = { binDir: BIN_DIR, cacheDir: CACHE_DIR, nodePath: findNode() };
  const runPath = libraries.length > 0 ? { runPath: `$ORIGIN/${LIBRARY_FOLDER}` } : {};
  const outcome = await makeExecutable({ name, links, code, assets, scripts, execArgv, ...runPath }, place);
  await putLibrariesBeside(libraries, place.nodePath);
  if (needsFfi) await putFfiBeside();
  if (name === 'tke-eni' && outcome === 'made') await putManPage();
  return `${release} ${outcome}`;
}

/** Finds npm's Node, which must also be the one that runs this: the code cache fits one version only. */
export function findNode(): string {
  const { version, nodePath } = locate(`node-linux-${process.arch}`, 'bin/node');
  if (`v${version}` !== process.version) {
    throw new Error(
      `this is Node ${process.version}, the packaged one is v${version}: run make build, or npm exec node`,
    );
  }
  return nodePath;
}

/** Takes the man page of the executable itself: it tells of exactly what was built. */
async function putManPage(): Promise<void> {
  const { stdout } = await promisify(execFile)(join(BIN_DIR, 'tke-eni'), ['man']);
  const path = join(ROOT, 'dist', 'man', 'tke-eni.8');
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, stdout);
}

function locate(packageName: string, file: string): { readonly version: string; readonly nodePath: string } {
  const require = createRequire(import.meta.url);
  const manifestPath = require.resolve(`${packageName}/package.json`);
  const { version } = require(manifestPath) as { readonly version: string };
  return { version, nodePath: join(dirname(manifestPath), file) };
}

async function putFfiBeside(): Promise<void> {
  const file = `ffi-rs.linux-${process.arch}-gnu.node`;
  const { nodePath: addon } = locate(`@yuuang/ffi-rs-linux-${process.arch}-gnu`, file);
  await putFile(addon, join(BIN_DIR, FFI_FILE));
}

/** Takes them from this system, whose loader finds them for Node itself: without them not even this would run. */
async function putLibrariesBeside(names: readonly string[], nodePath: string): Promise<void> {
  if (names.length === 0) return;
  const found = findLibraries([nodePath]);
  for (const name of names) {
    const library = found.find(({ path }) => basename(path) === name);
    if (library === undefined) throw new Error(`${nodePath} does not need ${name} any more: take it off the list here`);
    await putFile(library.source, join(BIN_DIR, LIBRARY_FOLDER, name));
  }
}

async function putFile(source: string, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const temporary = join(dirname(target), `.${basename(target)}.new`);
  await copyFile(source, temporary);
  await rename(temporary, target);
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !NAMES.some((candidate) => candidate === name));
  if (unknown.length > 0) {
    console.error(`nothing to build of the name ${unknown.join(', ')}; there are ${NAMES.join(', ')}`);
    process.exit(2);
  }
  const names = wanted.length === 0 ? NAMES : NAMES.filter((name) => wanted.includes(name));
  await buildExecutables(names, (line) => console.error(line));
}
