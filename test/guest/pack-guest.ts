import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CpioEntry, packCpio } from './cpio.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** Sources and packages that a script in the guest may import. */
const SOURCES = [
  'agent',
  'bpf',
  'dataplane',
  'inspection',
  'netlink',
  'runtime',
  'sysctl',
  'test/guest',
  'test/kernel/dataplane',
  'test/support',
];
const PACKAGES = ['node_modules/ffi-rs', 'node_modules/@yuuang'];

/** What the modules of a network stack depend on is among these. */
const MODULES = ['kernel/net', 'kernel/lib', 'kernel/crypto', 'kernel/arch/x86/crypto'];
const MODULE_FILES = ['kernel/drivers/net/veth.ko', 'kernel/drivers/net/dummy.ko'];

/**
 * Packs the initial file system of a guest: busybox, nft, ip and node of this machine with their shared libraries, the modules of
 * the network stack, and the project's sources. The guest runs `script`, a path inside the project, and ends.
 */
export function packGuest(modules: string, script: string): Buffer {
  if (!existsSync(join(modules, 'modules.dep'))) {
    throw new Error(`${modules} has no modules.dep, which modprobe reads: run busybox depmod (docs/testing.md)`);
  }
  const release = modules.split('/').findLast((part) => part !== '') ?? '';
  const programs = { '/bin/busybox': 'busybox', '/bin/nft': 'nft', '/bin/ip': 'ip', '/bin/node': process.execPath };
  const files = new Map<string, string>();
  for (const [path, program] of Object.entries(programs)) {
    const found = program.startsWith('/') ? program : whereIs(program);
    files.set(path, found);
    for (const library of librariesOf(found)) files.set(library, realpathSync(library));
  }
  for (const folder of [...SOURCES, ...PACKAGES])
    for (const path of filesBelow(join(PROJECT, folder))) {
      files.set(join('/project', relative(PROJECT, path)), path);
      if (path.endsWith('.node')) for (const library of librariesOf(path)) files.set(library, realpathSync(library));
    }
  files.set('/project/package.json', join(PROJECT, 'package.json'));
  const chosen = [
    ...MODULES.flatMap((folder) => filesBelow(join(modules, folder))),
    ...MODULE_FILES.map((path) => join(modules, path)),
    ...readdirSync(modules)
      .filter((name) => name.startsWith('modules.'))
      .map((name) => join(modules, name)),
  ];
  for (const path of chosen) files.set(join('/lib/modules', release, relative(modules, path)), path);
  return packCpio([
    ...foldersOf([...files.keys(), '/proc/x', '/sys/x', '/dev/x', '/tmp/x', '/run/netns/x', '/sbin/x', '/usr/sbin/x']),
    ...[...files].map(([path, from]) => fileEntry(path, from)),
    ...['/sbin/modprobe', '/bin/sh', '/bin/mount', '/bin/sysctl', '/bin/unshare', '/bin/nsenter'].map((path) =>
      link(path),
    ),
    // Programs are looked for in these folders.
    ...['nft', 'ip'].map((name) => ({ kind: 'link' as const, path: `usr/sbin/${name}`, to: `/bin/${name}` })),
    { kind: 'file', path: 'init', content: Buffer.from(initScript(script)), isExecutable: true },
  ]);
}

function initScript(script: string): string {
  return `#!/bin/busybox sh
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
/bin/node --disable-warning=ExperimentalWarning ${script} 2>&1
echo "GUEST-END $?"
$B reboot -f
`;
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
