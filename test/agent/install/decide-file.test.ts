import test from 'ava';
import {
  decideFile,
  type FileStep,
  isNewerRelease,
  type ObservedFile,
  type Successor,
} from '../../../agent/install/decide-file.ts';
import type { PlannedFile } from '../../../agent/install/planned-file.ts';

const OURS: PlannedFile = { path: '/bin/a', source: { kind: 'copy', of: '/src/a' }, mode: 0o755, owner: 'ours' };
const SHARED: PlannedFile = { ...OURS, owner: 'shared' };
const RECORDED: PlannedFile = { ...SHARED, isRecorded: true };
const NONE: PlannedFile = { ...OURS, source: { kind: 'none' } };
const file = (content: 'equal' | 'part' | 'different', mode = 0o755): ObservedFile => ({ kind: 'file', mode, content });
const NEWER: Successor = { kind: 'release', release: '0.3.0' };
const PRODUCT: Successor = { kind: 'product' };

const TABLE: readonly (readonly [string, PlannedFile, ObservedFile, Successor | undefined, FileStep['kind']])[] = [
  ['ours that is as planned', OURS, file('equal'), undefined, 'keep'],
  ['ours that is not there', OURS, { kind: 'absent' }, undefined, 'write'],
  ['ours that is another file', OURS, file('different'), undefined, 'write'],
  ['ours that was cut off', OURS, file('part'), undefined, 'write'],
  ['ours with another mode', OURS, file('equal', 0o644), undefined, 'set-mode'],
  ['ours that all may write', OURS, file('equal', 0o777), undefined, 'set-mode'],
  ['ours that is a link', OURS, { kind: 'link' }, undefined, 'write'],
  ['ours that is a folder', OURS, { kind: 'other', what: 'a folder' }, undefined, 'write'],
  ['ours that a newer release replaced', OURS, file('different'), NEWER, 'leave'],
  ['ours that the closed product replaced', OURS, file('different'), PRODUCT, 'leave'],
  ['ours that a newer release took away', OURS, { kind: 'absent' }, NEWER, 'write'],
  ['a shared one that is not there', SHARED, { kind: 'absent' }, undefined, 'write'],
  ['a shared one of others', SHARED, file('different'), undefined, 'keep'],
  ['a shared one of others that is a link', SHARED, { kind: 'link' }, undefined, 'keep'],
  ['a shared one that was cut off', SHARED, file('part'), undefined, 'write'],
  ['a shared one in whose place is a folder', SHARED, { kind: 'other', what: 'a folder' }, undefined, 'write'],
  ['a shared one of others that is equal to ours and nobody may run', SHARED, file('equal', 0o644), undefined, 'keep'],
  ['a shared one that we installed and nobody may run', RECORDED, file('equal', 0o644), undefined, 'set-mode'],
  ['a shared one of others that nobody may run', SHARED, file('different', 0o644), undefined, 'keep'],
  ['what is not used any more', NONE, file('different'), undefined, 'remove'],
  ['what is not used, and not there', NONE, { kind: 'absent' }, undefined, 'keep'],
];

for (const [what, planned, observed, successor, step] of TABLE) {
  test(`decideFile: decides on ${what}: ${step}`, (t) => {
    t.is(decideFile(planned, observed, successor).kind, step);
  });
}

test('isNewerRelease: compares numbers and nothing behind them', (t) => {
  const newer = (one: string, other: string) => isNewerRelease(one, other);
  t.true(newer('0.2.0', '0.1.9'));
  t.true(newer('0.10.0+abc', '0.9.0+def'));
  t.true(newer('1.0.0', '0.99.99'));
  t.false(newer('0.2.0+b', '0.2.0+a'));
  t.false(newer('0.1.9', '0.2.0'));
  t.false(newer('odd', '0.0.1'));
});
