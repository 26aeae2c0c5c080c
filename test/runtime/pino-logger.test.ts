import { closeSync, openSync, readFileSync } from 'node:fs';
import test from 'ava';
import { openPinoLogger } from '../../runtime/pino-logger.ts';
import { createTempDir } from '../support/temp-dir.ts';

test('openPinoLogger: shows bytes that are not UTF-8, and control characters, in valid JSON', (t) => {
  const dir = createTempDir('log');
  t.teardown(dir.close);
  const fd = openSync(dir.join('log'), 'w');
  const log = openPinoLogger('info', fd).child({ podKey: '\udc80' });
  log.warn('kernel changed', { link: '\udcff\udcfe', error: new Error('of \udcff'), other: 'p\u001b[2J \\udcff' });
  closeSync(fd);
  const text = readFileSync(dir.join('log'), 'utf8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are looked for.
  t.false(/[\u0000-\u0009\u000b-\u001f\ufffd]/.test(text), text);
  t.like(JSON.parse(text), { podKey: '\\x80', link: '\\xff\\xfe', other: 'p\u001b[2J \\udcff' });
  t.is(JSON.parse(text).error.message, 'of \\xff');
});
