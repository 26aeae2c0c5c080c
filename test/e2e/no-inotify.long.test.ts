import test from 'ava';
import { checkWithoutInotify } from './support/no-inotify.ts';

for (const [call, error] of [
  ['inotify_init1', 'ENFILE'],
  ['inotify_init1', 'ENOMEM'],
  ['inotify_add_watch', 'ENOSPC'],
  ['inotify_add_watch', 'ENOMEM'],
  ['inotify_add_watch', 'EACCES'],
] as const) {
  test.serial(`agent: serves, stays and polls its files when ${call} fails with ${error}`, async (t) => {
    t.timeout(180_000);
    await checkWithoutInotify(t, call, error);
  });
}
