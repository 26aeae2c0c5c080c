import { closeSync, openSync, readFileSync } from 'node:fs';
import test from 'ava';
import { usesColor } from '../../../cli/output/color.ts';
import { openStream } from '../../../cli/output/open-stream.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const PARTS = {
  isTerminal: false,
  isColored: false,
  columnsVariable: undefined,
  size: () => undefined,
  onClosed: () => {},
};

test('openStream: what is written is out at once', (t) => {
  const dir = createTempDir('stream');
  const fd = openSync(dir.join('out'), 'w');
  const stream = openStream({ ...PARTS, fd });
  stream.write('äöü\n');
  t.is(readFileSync(dir.join('out'), 'utf8'), 'äöü\n');
  closeSync(fd);
  dir.close();
});

test('openStream: bytes that are no text are written unchanged', (t) => {
  const dir = createTempDir('stream');
  const fd = openSync(dir.join('out'), 'w');
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
  openStream({ ...PARTS, fd }).writeBytes(bytes);
  t.deepEqual(readFileSync(dir.join('out')), bytes);
  closeSync(fd);
  dir.close();
});

test('openStream: is as wide as the terminal, as COLUMNS says, or 160', (t) => {
  const columns = (parts: Partial<Parameters<typeof openStream>[0]>) =>
    openStream({ ...PARTS, fd: 1, ...parts }).columns();
  t.is(columns({ size: () => ({ columns: 99, rows: 20 }), columnsVariable: '70' }), 99);
  t.is(columns({ columnsVariable: '70' }), 70);
  t.is(columns({ columnsVariable: 'wide' }), 160);
  t.is(columns({}), 160);
});

const TABLE = [
  ['auto', true, {}, true],
  ['auto', false, {}, false],
  ['auto', true, { NO_COLOR: '1' }, false],
  ['auto', true, { NO_COLOR: '' }, true],
  ['auto', true, { TERM: 'dumb' }, false],
  ['always', false, { NO_COLOR: '1', TERM: 'dumb' }, true],
  ['never', true, {}, false],
] as const;

for (const [choice, isTerminal, env, wanted] of TABLE) {
  test(`usesColor: ${choice}, ${isTerminal ? 'a terminal' : 'no terminal'}, ${JSON.stringify(env)}: ${wanted}`, (t) => {
    t.is(usesColor(choice, isTerminal, env), wanted);
  });
}
