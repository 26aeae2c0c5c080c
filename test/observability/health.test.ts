import test from 'ava';
import { evaluateLiveness, evaluateReadiness } from '../../observability/health.ts';

const NOW_MS = 3_600_000;
const MINUTE_MS = 60_000;
const FINE = { resource: 'nodes', isSynced: true, size: 3, lastContactMs: NOW_MS - MINUTE_MS };

function facts(over: Partial<Parameters<typeof evaluateLiveness>[0]>) {
  return {
    informers: [FINE],
    contact: { lastOkMs: NOW_MS - 10_000 },
    clock: { monotonicMs: () => NOW_MS },
    startProblem: undefined,
    ...over,
  };
}

test('evaluateLiveness: is content with caches that hear something', (t) => {
  t.is(evaluateLiveness(facts({})), undefined);
});

test('evaluateLiveness: names a watch that is silent while other requests are answered', (t) => {
  const silent = { ...FINE, resource: 'pods', lastContactMs: NOW_MS - 20 * MINUTE_MS };
  t.regex(evaluateLiveness(facts({ informers: [FINE, silent] })) ?? '', /watch of pods/);
});

test('evaluateLiveness: does not end a process because the API server is away', (t) => {
  const silent = { ...FINE, lastContactMs: NOW_MS - 20 * MINUTE_MS };
  const contact = { lastOkMs: NOW_MS - 20 * MINUTE_MS };
  t.is(evaluateLiveness(facts({ informers: [silent], contact })), undefined);
  t.is(evaluateLiveness(facts({ informers: [silent], contact: { lastOkMs: Number.NEGATIVE_INFINITY } })), undefined);
});

test('evaluateLiveness: gives the watches of lost definitions time after they are served again', (t) => {
  const informers = [{ ...FINE, resource: 'necs', lastContactMs: NOW_MS - 20 * MINUTE_MS }];
  t.is(evaluateLiveness(facts({ informers, startProblem: 'definitions are lost' })), undefined);
  t.is(evaluateLiveness(facts({ informers, restoredMs: NOW_MS - MINUTE_MS })), undefined);
  t.regex(evaluateLiveness(facts({ informers, restoredMs: NOW_MS - 15 * MINUTE_MS })) ?? '', /watch of necs/);
});

test('evaluateReadiness: waits for definitions and caches, whoever leads', (t) => {
  t.is(evaluateReadiness(facts({})), undefined);
  t.regex(evaluateReadiness(facts({ startProblem: 'definitions: forbidden' })) ?? '', /forbidden/);
  t.regex(evaluateReadiness(facts({ informers: [{ ...FINE, isSynced: false }] })) ?? '', /nodes/);
});

test('evaluateReadiness: says what the API server refuses of the lock', (t) => {
  t.regex(
    evaluateReadiness(facts({ lockRefusal: 'PUT locks: FORBIDDEN: no' })) ?? '',
    /cannot lead: PUT locks: FORBIDDEN/,
  );
});

test('evaluateReadiness: names what was heard nothing of for ten minutes, also while nothing else is answered', (t) => {
  const silent = { ...FINE, resource: 'pods', lastContactMs: NOW_MS - 20 * MINUTE_MS };
  t.is(
    evaluateReadiness(facts({ informers: [FINE, silent], contact: { lastOkMs: Number.NEGATIVE_INFINITY } })),
    'nothing heard for 10 minutes of: pods',
  );
  t.is(evaluateReadiness(facts({ informers: [silent], restoredMs: NOW_MS - MINUTE_MS })), undefined);
});
