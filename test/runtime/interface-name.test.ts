import test from 'ava';
import { isInterfaceName } from '../../runtime/interface-name.ts';

test('isInterfaceName: takes what the kernel takes, byte for byte', (t) => {
  for (const name of ['eth0', 'a', 'eth0.100', 'net-1_x', 'x'.repeat(15), 'ü'.repeat(7), '...']) {
    t.true(isInterfaceName(name), name);
  }
});

test('isInterfaceName: refuses what the kernel refuses, and patterns that it fills in', (t) => {
  for (const name of [
    '',
    '.',
    '..',
    'all',
    'default',
    'a/b',
    'eth0:1',
    'a b',
    'a\tb',
    'x'.repeat(16),
    'ü'.repeat(8),
    'eth%d',
    'a%b',
  ]) {
    t.false(isInterfaceName(name), name);
  }
});
