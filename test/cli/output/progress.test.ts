import test from 'ava';
import { openProgress } from '../../../cli/output/progress.ts';

function lineOf(isTerminal: boolean, env: Readonly<Record<string, string>>, columns = 80): string {
  let written = '';
  const stderr = {
    ...{ isTerminal, isColored: false, columns: () => columns, rows: () => 24 },
    write: (text: string) => {
      written += text;
    },
    writeBytes: () => {},
  };
  const progress = openProgress({ stderr, env });
  progress.show('1/2 routes\u001b[2J');
  progress.show('2/2 a part with a long name');
  progress.clear();
  return written;
}

test('openProgress: redraws one line on a terminal and takes it away', (t) => {
  t.is(lineOf(true, {}), '\r1/2 routes\\x1b[2J\u001b[K\r2/2 a part with a long name\u001b[K\r\u001b[K');
  t.is(lineOf(true, {}, 12), '\r1/2 routes…\u001b[K\r2/2 a part…\u001b[K\r\u001b[K', 'never wraps');
});

test('openProgress: writes nothing where nobody sees it redrawn', (t) => {
  t.is(lineOf(false, {}), '');
  t.is(lineOf(true, { TERM: 'dumb' }), '');
});
