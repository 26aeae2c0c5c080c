import { closeSync, openSync, readFileSync } from 'node:fs';
import test from 'ava';
import { wantsColor } from '../../../cli/output/color.ts';
import { openStream } from '../../../cli/output/open-stream.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const PARTS = {
  isTerminal: false,
  isColored: false,
  columnsWanted: undefined,
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

test('openStream: is as wide as the terminal, as COLUMNS says, or 160', (t) => {
  const columns = (parts: Partial<Parameters<typeof openStream>[0]>) =>
    openStream({ ...PARTS, fd: 1, ...parts }).columns();
  t.is(columns({ size: () => ({ columns: 99, rows: 20 }), columnsWanted: '70' }), 99);
  t.is(columns({ columnsWanted: '70' }), 70);
  t.is(columns({ columnsWanted: 'wide' }), 160);
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
  test(`wantsColor: ${choice}, ${isTerminal ? 'a terminal' : 'no terminal'}, ${JSON.stringify(env)}: ${wanted}`, (t) => {
    t.is(wantsColor(choice, isTerminal, env), wanted);
  });
}
