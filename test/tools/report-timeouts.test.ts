import test from 'ava';
import { reportTimeouts } from '../../tools/report-timeouts.ts';

const REPORTER = new URL('../../node_modules/ava/lib/reporters/tap.js', import.meta.url).href;

/** AVA's own, as far as it is called here. */
type TapReporter = { writeTimeout(event: object): void };
type ReporterClass = { new (options: object): TapReporter; readonly prototype: { writeTest(): void } };

test('reportTimeouts: a test that is pending at a timeout fails, and is named', async (t) => {
  const { default: reporter }: { readonly default: ReporterClass } = await import(REPORTER);
  reportTimeouts(reporter);
  let said = '';
  const reportStream = {
    write: (text: string) => {
      said += text;
    },
  };
  new reporter({ extensions: ['ts'], projectDir: '/', reportStream }).writeTimeout({
    period: 4_000,
    pendingTests: new Map([['/a.test.ts', new Set(['waits'])]]),
  });
  t.regex(said, /^not ok 1 - waits\n/);
  t.regex(said, /no new tests completed within the last 4000ms/);
});
