import test from 'ava';
import { eniMark, eniMarkMaskFaults } from '../../dataplane/eni-mark.ts';

const marks = test.macro((t, slot: number, mask: number, mark: number) => {
  t.deepEqual(eniMarkMaskFaults(mask), []);
  t.is(eniMark(slot, mask), mark);
  t.is((mark & mask) >>> 0, mark);
});

test('eniMark: moves the slot to the default mask', marks, 5, 0x00ff0000, 0x50000);
test('eniMark: reaches the highest bit without a sign', marks, 255, 0xff000000, 0xff000000);
test('eniMark: takes a mask wider than a slot', marks, 255, 0x0fff0000, 0xff0000);

const refused = test.macro((t, mask: number, fault: RegExp) => {
  t.regex(eniMarkMaskFaults(mask).join('\n'), fault);
});

test('eniMarkMaskFaults: refuses bits with a gap', refused, 0x00fe7f00, /8 bits in a row/);
test('eniMarkMaskFaults: refuses fewer than 8 bits', refused, 0x007f0000, /8 bits in a row/);
test('eniMarkMaskFaults: refuses the bits of kube-proxy', refused, 0x000ff000, /kube-proxy/);
test('eniMarkMaskFaults: refuses our own NodePort bit', refused, 0x000000ff, /NodePort/);
test('eniMarkMaskFaults: refuses no bits', refused, 0, /expected a number/);
test('eniMarkMaskFaults: refuses more than 32 bits', refused, 2 ** 33, /expected a number/);
