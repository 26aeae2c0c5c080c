import test from 'ava';
import { BodyBudget, checkBodyLimit } from '../../runtime/body-budget.ts';
import { ConfigError } from '../../runtime/decode.ts';

const MIB = 1024 * 1024;

test('checkBodyLimit: takes what fits, and anything without a limit', (t) => {
  t.notThrows(() => checkBodyLimit('--body-limit-mib', MIB, 256 * MIB));
  t.notThrows(() => checkBodyLimit('--body-limit-mib', 24 * MIB, 1_024 * MIB));
  t.notThrows(() => checkBodyLimit('--body-limit-mib', 1_024 * MIB, 0));
  t.notThrows(() => checkBodyLimit('--body-limit-mib', 1_024 * MIB, 2 ** 64));
});

test('checkBodyLimit: names the setting, what would fit, and the memory limit that it takes', (t) => {
  const error = t.throws(() => checkBodyLimit('--body-limit-mib', 64 * MIB, 1_024 * MIB), { instanceOf: ConfigError });
  t.is(
    error?.message,
    'settings: --body-limit-mib: expected at most 24 with a memory limit of 1024 MiB, or a memory limit of 2432 MiB, got 64',
  );
  t.throws(() => checkBodyLimit('--body-limit-mib', MIB, 100 * MIB), {
    message: 'settings: --body-limit-mib: expected a memory limit of 164 MiB, got 1',
  });
});

test('BodyBudget: gives no more than its total, and gives again what was released', (t) => {
  const budget = new BodyBudget(10, 25);
  t.true(budget.acquire(10));
  t.true(budget.acquire(10));
  t.false(budget.acquire(10));
  budget.release(10);
  t.true(budget.acquire(10));
});
