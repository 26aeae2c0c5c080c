import { closeSync, openSync, readFileSync } from 'node:fs';
import test from 'ava';
import { openPinoLogger } from '../../runtime/pino-logger.ts';
import { createTempDir } from '../support/temp-dir.ts';

/** Texts and things of 2 MB and more, in every form that a field may have. */
function longForms(): Readonly<Record<string, unknown>> {
  const long = 'x'.repeat(2_000_000);
  class Thing {
    readonly detail = long;
    readonly list = Array(100_000).fill(long);
  }
  const error = new Error(long, { cause: Object.assign(new Error(long), { code: long }) });
  error.cause = Object.assign(error.cause as Error, { cause: error });
  return {
    text: long,
    controls: '\u0001'.repeat(2_000_000),
    characters: '語'.repeat(2_000_000),
    list: Array(100_000).fill({ long }),
    instance: new Thing(),
    toJson: { toJSON: () => long },
    toJsonList: { toJSON: () => Array(100_000).fill(long) },
    url: new URL(`http://a/${long}`),
    error,
    inner: { error, errors: Array(100_000).fill(error) },
    typeError: Object.assign(new TypeError(long), { fields: long }),
    buffer: Buffer.alloc(2_000_000),
    bytes: new Uint32Array(500_000),
    bigint: 10n ** 100_000n,
    map: new Map([[long, long]]),
    set: new Set([long]),
    symbol: Symbol(long),
    boxed: Object(long),
    [long]: 'a long name',
  };
}

test('openPinoLogger: a line is short, whatever is logged', (t) => {
  const dir = createTempDir('log');
  t.teardown(dir.close);
  const fd = openSync(dir.join('log'), 'w');
  const log = openPinoLogger('info', fd);
  const forms = longForms();
  for (const [name, value] of Object.entries(forms)) log.warn('one', { [name]: value, podKey: 'd/a' });
  log.error('all', forms);
  log.child(forms).info('child', forms);
  log.info('m'.repeat(2_000_000));
  log.info('\u0001'.repeat(2_000_000), forms);
  closeSync(fd);
  const lines = readFileSync(dir.join('log'), 'utf8').trimEnd().split('\n');
  t.is(lines.length, Object.keys(forms).length + 4);
  for (const line of lines) {
    t.true(Buffer.byteLength(line) < 32_768, `${Buffer.byteLength(line)} bytes: ${line.slice(0, 100)}`);
    t.regex(JSON.parse(line).level, /^(?:info|warn|error)$/);
  }
  for (const line of lines.slice(0, -4)) t.like(JSON.parse(line), { msg: 'one', podKey: 'd/a' });
});

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

test('openPinoLogger: writes spans in whole milliseconds, and other numbers as they are', (t) => {
  const dir = createTempDir('log');
  t.teardown(dir.close);
  const fd = openSync(dir.join('log'), 'w');
  openPinoLogger('info', fd).info('call ended', {
    tookMs: 812.3456789,
    share: 0.25,
    limitMs: Number.POSITIVE_INFINITY,
  });
  closeSync(fd);
  const line = JSON.parse(readFileSync(dir.join('log'), 'utf8'));
  t.like(line, { tookMs: 812, share: 0.25, limitMs: null });
});
