import { readFileSync } from 'node:fs';
import test from 'ava';
import { checkDescriptors } from '../../../agent/host/check-descriptors.ts';

const limitsOf = (soft: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units     \nMax processes             1                    1                    processes \nMax open files            ${soft.padEnd(21)}1048576              files     \n`;

test('checkDescriptors: names too small a limit', (t) => {
  t.is(checkDescriptors(limitsOf('1024')), undefined);
  t.is(checkDescriptors(limitsOf('unlimited')), undefined);
  t.is(checkDescriptors(''), undefined);
  t.regex(checkDescriptors(limitsOf('256')) ?? '', /^256 file descriptors are allowed, 1024 /);
});

test('checkDescriptors: reads the limits of this kernel', (t) => {
  const text = readFileSync('/proc/self/limits', 'utf8');
  t.regex(checkDescriptors(text.replace(/^(Max open files +)\S+/m, '$17')) ?? '', /^7 file/);
});
