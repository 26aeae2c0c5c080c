import test from 'ava';
import { CloudError, type Retry } from '../../../cloud/cloud-error.ts';
import { decideRetry } from '../../../cloud/tencent/decide-retry.ts';

const READ = { isRead: true, hasToken: false };
const TOKEN = { isRead: false, hasToken: true };
const BARE = { isRead: false, hasToken: false };

function errorOf(retry: Retry, afterMs = 500): CloudError {
  return new CloudError({ code: 'C', action: 'A', text: 't', retry, afterMs });
}

const repeats = test.macro((t, retry: Retry, nature: typeof READ, wanted: boolean) => {
  t.is(decideRetry(errorOf(retry), nature, 1, 0) !== undefined, wanted);
});
for (const nature of [READ, TOKEN, BARE]) {
  const words = JSON.stringify(nature);
  for (const retry of ['never', 'quota', 'gone'] as const)
    test(`decideRetry: ${retry} ${words}`, repeats, retry, nature, false);
  for (const retry of ['throttled', 'backoff', 'busy', 'credentials'] as const) {
    test(`decideRetry: ${retry} ${words}`, repeats, retry, nature, true);
  }
}
test('decideRetry: what may have happened, a read', repeats, 'resolve', READ, true);
test('decideRetry: what may have happened, with a token', repeats, 'resolve', TOKEN, true);
test('decideRetry: what may have happened, with nothing to tell by', repeats, 'resolve', BARE, false);

test('decideRetry: waits grow to a bound, chance only shortens them, and the eighth attempt is the last', (t) => {
  const waits = [1, 2, 3, 4, 5, 6, 7].map((attempt) => decideRetry(errorOf('throttled'), READ, attempt, 0));
  t.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 20_000]);
  t.is(decideRetry(errorOf('throttled'), READ, 3, 0.999), 1_001);
  t.is(decideRetry(errorOf('throttled'), READ, 8, 0), undefined);
  t.is(decideRetry(errorOf('credentials', 0), READ, 2, 0), undefined);
});
