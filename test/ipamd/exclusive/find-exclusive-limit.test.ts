import test from 'ava';
import { findExclusiveLimit, isExclusiveServed } from '../../../ipamd/exclusive/find-exclusive-limit.ts';

for (const [instanceType, cores, secondaryEnis, most, extensionEnis = 0] of [
  ['S5.MEDIUM2', 2, 3, 3],
  ['S5.MEDIUM2', 2, 40, 9],
  ['S5.LARGE8', 4, 40, 19],
  ['SA2.2XLARGE16', 8, 60, 39],
  ['IT5.32XLARGE', 128, 60, 23],
  ['SA3.LARGE8', 4, 40, 15],
  ['SA3.2XLARGE16', 8, 40, 15],
  ['C4.LARGE8', 4, 12, 12],
  ['', 4, 0, 0],
  ['S5.2XLARGE16', 8, 5, 39, 39],
  ['S5.2XLARGE16', 8, 5, 39, 60],
  ['S5.2XLARGE16', 8, 5, 12, 12],
  ['S5.2XLARGE16', 8, 5, 5],
  ['C4.LARGE8', 4, 3, 20, 20],
] as readonly (readonly [string, number, number, number, number?])[]) {
  test(`findExclusiveLimit: ${most} for ${instanceType || 'a type that nobody tells'} with ${secondaryEnis} ENIs, ${extensionEnis} more of the extension type`, (t) => {
    t.is(findExclusiveLimit({ instanceType, cores, secondaryEnis, extensionEnis }), most);
  });
}

test('isExclusiveServed: goes by the label, and by the flag where there is none', (t) => {
  const table = [undefined, 'true', 'false', 'yes'].map((label) => [
    isExclusiveServed(label, false),
    isExclusiveServed(label, true),
  ]);
  t.deepEqual(table, [
    [false, true],
    [true, true],
    [false, false],
    [false, true],
  ]);
});
