import test from 'ava';
import { checkWithoutInotify } from './support/no-inotify.ts';

// The other errors of inotify(7): no-inotify.long.test.ts.
test('agent: serves, stays and polls its files where no inotify instance is left', async (t) => {
  t.timeout(180_000);
  await checkWithoutInotify(t, 'inotify_init1', 'EMFILE');
});
