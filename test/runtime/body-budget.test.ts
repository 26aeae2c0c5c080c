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

/** A request of a sender, and whether it was given up. */
function requestOf(remoteAddress: string) {
  const request = {
    socket: { remoteAddress },
    isGivenUp: false,
    destroy: () => {
      request.isGivenUp = true;
    },
  };
  return request;
}

test('BodyBudget: gives no more than its total to a sender, and gives again what was released', (t) => {
  const budget = new BodyBudget(10, 25);
  const [first, second, third] = ['10.0.0.1', '10.0.0.1', '10.0.0.1'].map((address) =>
    budget.begin(requestOf(address)),
  );
  t.true(first?.acquire(10));
  t.true(second?.acquire(10));
  t.false(third?.acquire(10));
  first?.release();
  t.true(third?.acquire(10));
});

test('BodyBudget: gives up a body of the sender that has most for one of a sender that has less', (t) => {
  const budget = new BodyBudget(10, 40);
  const slow = Array.from({ length: 4 }, () => requestOf('10.0.0.1'));
  for (const one of slow) t.true(budget.begin(one).acquire(10));
  t.true(budget.begin(requestOf('10.0.0.2')).acquire(10));
  t.deepEqual(
    slow.map(({ isGivenUp }) => isGivenUp),
    [true, false, false, false],
  );
  // Its share is now the largest.
  t.false(budget.begin(requestOf('10.0.0.1')).acquire(10));
});
