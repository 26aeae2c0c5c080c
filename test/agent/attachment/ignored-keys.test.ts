import test from 'ava';
import { IgnoredKeys } from '../../../agent/attachment/ignored-keys.ts';
import { type LogFields, silentLogger } from '../../../runtime/log.ts';

test('IgnoredKeys: reports each combination of a network once, and a bounded number of them', (t) => {
  const lines: LogFields[] = [];
  const ignored = new IgnoredKeys({ ...silentLogger, warn: (_message, fields = {}) => void lines.push(fields) });
  for (let round = 0; round < 3; round++) ignored.report('net', ['eni', 'kubeconfig']);
  ignored.report('net', []);
  ignored.report('net', ['eni']);
  ignored.report('other', ['eni']);
  t.deepEqual(lines, [
    { network: 'net', keys: ['eni', 'kubeconfig'] },
    { network: 'net', keys: ['eni'] },
    { network: 'other', keys: ['eni'] },
  ]);
  for (let each = 0; each < 1_000; each++)
    ignored.report(
      `net-${each}`,
      Array.from({ length: 99 }, () => 'x'),
    );
  t.is(lines.length, 64);
  t.true(lines.every(({ keys }) => Array.isArray(keys) && keys.length <= 16));
});
