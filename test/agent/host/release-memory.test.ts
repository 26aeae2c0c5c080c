import { readFileSync } from 'node:fs';
import test from 'ava';
import { cleanMappings, dropStartPages } from '../../../agent/host/release-memory.ts';

const FILE = '/opt/tke eni/agent';

function mapping(range: string, perms: string, path: string, fields: Readonly<Record<string, number>>): string {
  const lines = Object.entries(fields).map(([name, kib]) => `${name}:${String(kib).padStart(15)} kB`);
  return `${[`${range} ${perms} 00200000 fe:01 1234${' '.repeat(20)}${path}`, ...lines, 'VmFlags: rd mr mw me'].join('\n')}\n`;
}

const CLEAN = { Size: 8192, Rss: 4096, Anonymous: 0, Swap: 0 };

test('cleanMappings: takes code and constants, with their ranges, when nothing was written to them', (t) => {
  const smaps =
    mapping('00200000-00a00000', 'r--p', FILE, CLEAN) + mapping('7f0000a00000-7f0000a02000', 'r-xp', FILE, CLEAN);
  t.deepEqual(cleanMappings(smaps, FILE), [
    { address: 0x200000, bytes: 0x800000, residentBytes: 4096 * 1024 },
    { address: 0x7f0000a00000, bytes: 0x2000, residentBytes: 4096 * 1024 },
  ]);
});

const leavesAlone = test.macro((t, text: string) => {
  t.deepEqual(cleanMappings(text + mapping('00e00000-00f00000', 'r-xp', FILE, CLEAN), FILE), [
    { address: 0xe00000, bytes: 0x100000, residentBytes: 4096 * 1024 },
  ]);
});

const at = '00200000-00a00000';
test(
  'cleanMappings: leaves RELRO alone, of which pages were written',
  leavesAlone,
  mapping(at, 'r--p', FILE, { ...CLEAN, Anonymous: 4 }),
);
test(
  'cleanMappings: leaves pages alone that were written and swapped out',
  leavesAlone,
  mapping(at, 'r--p', FILE, { ...CLEAN, Swap: 4 }),
);
test('cleanMappings: leaves writable memory alone, written or not', leavesAlone, mapping(at, 'rw-p', FILE, CLEAN));
test('cleanMappings: leaves writable code alone', leavesAlone, mapping(at, 'rwxp', FILE, CLEAN));
test('cleanMappings: leaves shared memory alone', leavesAlone, mapping(at, 'r--s', FILE, CLEAN));
test('cleanMappings: leaves other files alone', leavesAlone, mapping(at, 'r-xp', `${FILE}.node`, CLEAN));
test('cleanMappings: leaves memory without a file alone', leavesAlone, mapping(at, 'r-xp', '[vdso]', CLEAN));
test(
  'cleanMappings: leaves alone what the kernel does not describe',
  leavesAlone,
  mapping(at, 'r-xp', FILE, { Size: 8192, Rss: 4096 }),
);

test('dropStartPages: lets go of most file pages and the process goes on', (t) => {
  const before = residentFileKib();
  const dropped = dropStartPages();
  const after = residentFileKib();
  t.true(dropped > 0);
  t.true(after < before, `${before} KiB before, ${after} after`);
  // Code that was let go of comes back when it is called: sorting, regular expressions, parsing.
  t.deepEqual(JSON.parse('[3,1,2]').toSorted(), [1, 2, 3]);
});

function residentFileKib(): number {
  return Number(/^RssFile:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
}
