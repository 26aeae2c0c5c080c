import test from 'ava';
import { judgeLiveness, judgeReadiness } from '../../../ipamd/observability/health.ts';

const NOW_MS = 3_600_000;
const MINUTE_MS = 60_000;
const FINE = { resource: 'nodes', isSynced: true, size: 3, lastContactMs: NOW_MS - MINUTE_MS };

function facts(over: Partial<Parameters<typeof judgeLiveness>[0]>) {
  return {
    informers: [FINE],
    contact: { lastOkMs: NOW_MS - 10_000 },
    clock: { monotonicMs: () => NOW_MS },
    startProblem: undefined,
    ...over,
  };
}

test('judgeLiveness: is content with caches that hear something', (t) => {
  t.is(judgeLiveness(facts({})), undefined);
});

test('judgeLiveness: names a watch that is silent while other requests are answered', (t) => {
  const silent = { ...FINE, resource: 'pods', lastContactMs: NOW_MS - 20 * MINUTE_MS };
  t.regex(judgeLiveness(facts({ informers: [FINE, silent] })) ?? '', /watch of pods/);
});

test('judgeLiveness: does not end a process because the API server is away', (t) => {
  const silent = { ...FINE, lastContactMs: NOW_MS - 20 * MINUTE_MS };
  const contact = { lastOkMs: NOW_MS - 20 * MINUTE_MS };
  t.is(judgeLiveness(facts({ informers: [silent], contact })), undefined);
  t.is(judgeLiveness(facts({ informers: [silent], contact: { lastOkMs: Number.NEGATIVE_INFINITY } })), undefined);
});

test('judgeReadiness: waits for definitions and caches, whoever leads', (t) => {
  t.is(judgeReadiness(facts({})), undefined);
  t.regex(judgeReadiness(facts({ startProblem: 'definitions: forbidden' })) ?? '', /forbidden/);
  t.regex(judgeReadiness(facts({ informers: [{ ...FINE, isSynced: false }] })) ?? '', /nodes/);
});
