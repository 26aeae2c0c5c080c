import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type CpioEntry, packCpio } from './cpio.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** Packages that are not bundled: one has an addon. */
const PACKAGES = ['ffi-rs', '@yuuang'];

/** What the modules of a network stack depend on is among these. */
const MODULES = ['kernel/net', 'kernel/lib', 'kernel/crypto', 'kernel/arch/x86/crypto'];
const MODULE_FILES = ['kernel/drivers/net/veth.ko', 'kernel/drivers/net/dummy.ko'];

/** Path of the script in the guest. */
const SCRIPT = '/project/script.mjs';

const INIT = `#!/bin/busybox sh
export PATH=/usr/sbin:/sbin:/bin HOME=/tmp
B=/bin/busybox
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
$B mount -t tmpfs tmp /tmp
$B mount -t tmpfs run /run
$B mkdir -p /run/netns
ip link set lo up
cd /project
/bin/node ${SCRIPT} 2>&1
echo "GUEST-END $?"
$B reboot -f
`;

/** What a guest has beside the kernel's modules and its programs. */
export type GuestFiles = {
  /** The script that it runs, a path inside the project. */
  readonly script: string;
  /** Further files of this machine, by their paths in the guest. */
  readonly more?: Readonly<Record<string, string>>;
};

/**
 * Packs the initial file system of a guest: busybox, nft, ip and node of this machine with their shared libraries, the modules of
 * the network stack, and a script of the project with all that it imports. The guest runs the script and ends.
 */
export async function packGuest(modules: string, { script, more = {} }: GuestFiles): Promise<Buffer> {
  if (!existsSync(join(modules, 'modules.dep'))) {
    throw new Error(`${modules} has no modules.dep, which modprobe reads: run busybox depmod (docs/testing.md)`);
  }
  const release = modules.split('/').findLast((part) => part !== '') ?? '';
  const programs = { '/bin/busybox': 'busybox', '/bin/nft': 'nft', '/bin/ip': 'ip', '/bin/node': process.execPath };
  const files = new Map<string, string>();
  const add = (path: string, from: string): void => {
    files.set(path, from);
    for (const library of librariesOf(from)) files.set(library, realpathSync(library));
  };
  for (const [path, program] of Object.entries(programs)) {
    add(path, program.startsWith('/') ? program : whereIs(program));
  }
  for (const [path, from] of Object.entries(more)) add(path, from);
  for (const name of PACKAGES)
    for (const path of filesBelow(join(PROJECT, 'node_modules', name))) {
      const inGuest = join('/project', relative(PROJECT, path));
      if (path.endsWith('.node')) add(inGuest, path);
      else files.set(inGuest, path);
    }
  const chosen = [
    ...MODULES.flatMap((folder) => filesBelow(join(modules, folder))),
    ...MODULE_FILES.map((path) => join(modules, path)),
    ...readdirSync(modules)
      .filter((name) => name.startsWith('modules.'))
      .map((name) => join(modules, name)),
  ];
  for (const path of chosen) files.set(join('/lib/modules', release, relative(modules, path)), path);
  return packCpio([
    ...foldersOf([
      ...files.keys(),
      SCRIPT,
      '/proc/x',
      '/sys/x',
      '/dev/x',
      '/tmp/x',
      '/run/netns/x',
      '/sbin/x',
      '/usr/sbin/x',
    ]),
    ...[...files].map(([path, from]) => fileEntry(path, from)),
    ...['/sbin/modprobe', '/bin/sh', '/bin/mount', '/bin/sysctl', '/bin/unshare', '/bin/nsenter'].map((path) =>
      link(path),
    ),
    // Programs are looked for in these folders.
    ...['nft', 'ip'].map((name) => ({ kind: 'link' as const, path: `usr/sbin/${name}`, to: `/bin/${name}` })),
    { kind: 'file', path: SCRIPT.slice(1), content: await bundleScript(script), isExecutable: false },
    { kind: 'file', path: 'init', content: Buffer.from(INIT), isExecutable: true },
  ]);
}

/** Bundled, since an emulated machine takes a minute to read some hundred sources. */
async function bundleScript(script: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    absWorkingDir: PROJECT,
    entryPoints: [script],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    external: ['ffi-rs'],
    // Packages that are CommonJS ask for modules of Node by `require`.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'error',
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error(`${script}: esbuild made no file`);
  return file.contents;
}

function link(path: string): CpioEntry {
  return { kind: 'link', path: path.slice(1), to: '/bin/busybox' };
}

function fileEntry(path: string, from: string): CpioEntry {
  const isExecutable = (lstatSync(from).mode & 0o111) !== 0;
  return { kind: 'file', path: path.slice(1), content: readFileSync(from), isExecutable };
}

/** Lists the folders of these paths, each after the one that it is in. */
function foldersOf(paths: readonly string[]): readonly CpioEntry[] {
  const folders = new Set<string>();
  const add = (path: string): void => {
    const folder = dirname(path);
    if (folder === '/' || folders.has(folder)) return;
    add(folder);
    folders.add(folder);
  };
  for (const path of paths) add(path);
  return [...folders].map((path) => ({ kind: 'folder', path: path.slice(1) }));
}

function filesBelow(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function whereIs(program: string): string {
  const folder = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'].find((path) => existsSync(join(path, program)));
  if (folder === undefined) throw new Error(`${program} is not installed here, and the guest needs it`);
  return join(folder, program);
}

/** Lists the shared libraries of a program, with the loader; none of one that is linked statically. */
function librariesOf(program: string): readonly string[] {
  try {
    const text = execFileSync('ldd', [program], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return [...text.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
  } catch {
    return [];
  }
}
