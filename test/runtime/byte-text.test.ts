import test from 'ava';
import fc from 'fast-check';
import { decodeByteText, encodeByteText, hasRawBytes, showBytesInJson, showByteText } from '../../runtime/byte-text.ts';
import { assertLaw } from '../support/law.ts';

const bytesOf = (hex: string) => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

const TABLE: readonly (readonly [hex: string, text: string, shown: string])[] = [
  ['65 74 68 30', 'eth0', 'eth0'],
  ['', '', ''],
  ['ff fe', '\udcff\udcfe', '\\xff\\xfe'],
  ['61 ff 62', 'a\udcff' + 'b', 'a\\xffb'],
  ['c3 a9', 'é', 'é'],
  ['f0 9f 98 80', '\u{1f600}', '\u{1f600}'],
  ['c3', '\udcc3', '\\xc3'],
  ['c3 c3 a9', '\udcc3é', '\\xc3é'],
  ['ed b3 bf', '\udced\udcb3\udcbf', '\\xed\\xb3\\xbf'],
  ['f0 9f 98', '\udcf0\udc9f\udc98', '\\xf0\\x9f\\x98'],
  ['c0 af', '\udcc0\udcaf', '\\xc0\\xaf'],
  ['ef bb bf 78', '\ufeffx', '\ufeffx'],
  ['1b 5b 32 4a', '\u001b[2J', '\u001b[2J'],
];

test('decodeByteText, encodeByteText, showByteText: bytes that are not UTF-8 go there and back, and are shown', (t) => {
  for (const [hex, text, shown] of TABLE) {
    t.is(decodeByteText(bytesOf(hex)), text, hex);
    t.deepEqual(Buffer.from(encodeByteText(text)), Buffer.from(bytesOf(hex)), hex);
    t.is(showByteText(text), shown, hex);
    t.is(hasRawBytes(text), shown !== text, hex);
    t.deepEqual(JSON.parse(showBytesInJson(JSON.stringify({ [text]: [text] }))), { [shown]: [shown] }, hex);
  }
});

test('decodeByteText: loses no byte, and makes two texts of two names', async (t) => {
  const names = fc.uint8Array({ minLength: 1, maxLength: 15 });
  await assertLaw(t, (t) =>
    fc.property(names, names, (a, b) => {
      t.deepEqual(Buffer.from(encodeByteText(decodeByteText(a))), Buffer.from(a));
      t.is(decodeByteText(a) === decodeByteText(b), Buffer.compare(a, b) === 0);
    }),
  );
});

test('showByteText: leaves well-formed text; the same of a JSON document as of its texts', async (t) => {
  const pieces = fc.array(
    fc.oneof(fc.uint8Array({ maxLength: 6 }).map(decodeByteText), fc.constant('\\'), fc.constant('\\udcff')),
  );
  await assertLaw(t, (t) =>
    fc.property(pieces, (parts) => {
      const text = parts.join('');
      t.true(showByteText(text).isWellFormed());
      t.is(JSON.parse(showBytesInJson(JSON.stringify(text))), showByteText(text));
      if (text.isWellFormed()) t.is(showByteText(text), text);
    }),
  );
});
