import test from 'ava';
import { checkLayers, findUnused, type Layers } from '../../tools/check-layers.ts';

const layers: Layers = {
  folders: {
    runtime: { folders: [], packages: [] },
    netlink: { folders: ['runtime'], packages: ['ip-address'] },
    agent: { folders: ['netlink', 'runtime', 'agent/api'], packages: [] },
    'agent/api': { folders: ['runtime'], packages: [] },
  },
  packageOnlyIn: { 'ffi-rs': ['netlink/libc.ts'] },
  facts: { 'one reader of JSON': { pattern: 'function recordOf\\(value: unknown', home: ['runtime/json.ts'] } },
  layered: ['agent'],
  free: ['sim', 'test'],
  apart: { sim: ['test'] },
  pure: ['netlink/codec.ts'],
  impure: ['Date.now'],
  processOnlyIn: ['**/main.ts'],
};

const finds = test.macro((t, path: string, text: string, wanted: readonly string[]) => {
  t.deepEqual(checkLayers(layers, [{ path, text }]), wanted);
});

test('checkLayers: accepts what the table allows', finds, 'agent/a.ts', "import { x } from '../netlink/x.ts';", []);
test('checkLayers: rejects an arrow back', finds, 'netlink/a.ts', "import { x } from '../agent/x.ts';", [
  'netlink/a.ts: netlink may not import agent/x.ts',
]);
test(
  'checkLayers: rejects an import of types too',
  finds,
  'runtime/a.ts',
  "import type { X } from '../netlink/x.ts';",
  ['runtime/a.ts: runtime may not import netlink/x.ts'],
);
test('checkLayers: rejects a dynamic import', finds, 'runtime/a.ts', "await import('../netlink/x.ts');", [
  'runtime/a.ts: runtime may not import netlink/x.ts',
]);
test('checkLayers: takes the longest folder name', finds, 'agent/api/a.ts', "import { x } from '../../netlink/x.ts';", [
  'agent/api/a.ts: agent/api may not import netlink/x.ts',
]);
test('checkLayers: keeps guests out of the core, and lets one file put them together', (t) => {
  const none = { folders: [], packages: [] };
  const folders = { agent: none, 'agent/guests': none, 'agent/start.ts': { folders: ['agent/guests'], packages: [] } };
  const text = "import type { X } from './guests/x.ts';";
  const check = (path: string) => checkLayers({ ...layers, folders }, [{ path, text }]);
  t.deepEqual(check('agent/a.ts'), ['agent/a.ts: agent may not import agent/guests/x.ts']);
  t.deepEqual(check('agent/start.ts'), []);
});
test('checkLayers: keeps a package to its owner', finds, 'netlink/conn.ts', "import { load } from 'ffi-rs';", [
  'netlink/conn.ts: only netlink/libc.ts may import ffi-rs',
]);
test('checkLayers: lets the owner have it', finds, 'netlink/libc.ts', "import { load } from 'ffi-rs';", []);
test('checkLayers: rejects a package that is not listed', finds, 'agent/a.ts', "import yargs from 'yargs';", [
  'agent/a.ts: may not import the package yargs',
]);
test('checkLayers: wants the node: prefix', finds, 'agent/a.ts', "import fs from 'fs';", ['agent/a.ts: write node:fs']);
test('checkLayers: keeps pure files pure', finds, 'netlink/codec.ts', "import 'node:fs';\nconst t = Date.now();", [
  'netlink/codec.ts: is pure, may not import node:fs',
  'netlink/codec.ts: is pure, may not use Date.now',
]);
test('checkLayers: does not read comments', finds, 'netlink/codec.ts', '// Date.now is not for us\n', []);
test('checkLayers: keeps process to main.ts', finds, 'agent/a.ts', 'const home = process.env["HOME"];', [
  'agent/a.ts: only main.ts may read process.env, process.argv or exit',
]);
test('checkLayers: keeps a fact to its file', finds, 'agent/a.ts', 'function recordOf(value: unknown) {}', [
  'agent/a.ts: "function recordOf(value: unknown" is in runtime/json.ts (one reader of JSON): import it',
]);
test('checkLayers: lets its file have it', finds, 'runtime/json.ts', 'function recordOf(value: unknown) {}', []);
test('checkLayers: lets a free folder import all', finds, 'test/a.ts', "import { x } from '../sim/x.ts';", []);
test('checkLayers: keeps a free folder apart from others', finds, 'sim/a.ts', "import { x } from '../test/x.ts';", [
  'sim/a.ts: sim may not import test/x.ts',
]);
test('checkLayers: wants a rule for each folder', finds, 'misc/a.ts', '', [
  'misc/a.ts: its folder has no rule in tools/layers.json',
]);

test('checkLayers: finds an import cycle once', (t) => {
  const found = checkLayers(layers, [
    { path: 'runtime/a.ts', text: "import { b } from './b.ts';" },
    { path: 'runtime/b.ts', text: "import { c } from './c.ts';" },
    { path: 'runtime/c.ts', text: "import { a } from './a.ts';" },
  ]);
  t.deepEqual(found, ['import cycle: runtime/a.ts -> runtime/b.ts -> runtime/c.ts -> runtime/a.ts']);
});

test('checkLayers: counts imports of types, and import(), in a cycle', (t) => {
  const ofTypes = checkLayers(layers, [
    { path: 'runtime/a.ts', text: "import type { B } from './b.ts';" },
    { path: 'runtime/b.ts', text: "import type { A } from './a.ts';" },
  ]);
  t.deepEqual(ofTypes, ['import cycle: runtime/a.ts -> runtime/b.ts -> runtime/a.ts']);
  const dynamic = checkLayers(layers, [
    { path: 'runtime/a.ts', text: "export const load = () => import('./b.ts');" },
    { path: 'runtime/b.ts', text: "import type { A } from './a.ts';" },
  ]);
  t.deepEqual(dynamic, ['import cycle: runtime/a.ts -> runtime/b.ts -> runtime/a.ts']);
});

test('checkLayers: finds folders of a layered program that import each other', (t) => {
  const found = checkLayers(layers, [
    { path: 'agent/pool/a.ts', text: "import type { B } from '../repair/b.ts';" },
    { path: 'agent/repair/b.ts', text: 'export type B = string;' },
    { path: 'agent/repair/c.ts', text: "import { d } from '../pool/d.ts';" },
    { path: 'agent/pool/d.ts', text: '' },
  ]);
  t.deepEqual(found, ['import cycle of folders: agent/pool -> agent/repair -> agent/pool']);
});

test('checkLayers: finds a folder that imports what puts the folders together', (t) => {
  const found = checkLayers(layers, [
    { path: 'agent/main.ts', text: "import { a } from './pool/a.ts';" },
    { path: 'agent/pool/a.ts', text: '' },
    { path: 'agent/pool/b.ts', text: "import { x } from '../components.ts';" },
    { path: 'agent/components.ts', text: '' },
  ]);
  t.deepEqual(found, ['import cycle of folders: agent -> agent/pool -> agent']);
});

test('findUnused: names what a row allows and no file of its folder imports', (t) => {
  const sources = [
    { path: 'netlink/a.ts', text: "import { x } from '../runtime/x.ts';\nimport { Address4 } from 'ip-address';" },
    { path: 'agent/a.ts', text: "import type { X } from '../netlink/x.ts';\nawait import('./api/x.ts');" },
  ];
  t.deepEqual(findUnused(layers, sources), [
    'tools/layers.json: agent may import runtime, and does not: remove it from its row',
    'tools/layers.json: agent/api may import runtime, and does not: remove it from its row',
  ]);
});
