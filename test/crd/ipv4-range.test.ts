import test from 'ava';
import fc from 'fast-check';
import { Address4 } from 'ip-address';
import { parseCidr } from '../../crd/ip-text.ts';
import { ipv4CidrAt, ipv4NetworkOf, ipv4RangeOf } from '../../crd/ipv4-range.ts';
import { parseIpv4Number } from '../../runtime/ip-text.ts';
import { assertLaw } from '../support/law.ts';

/** The arithmetic by hand: what the library must agree with. */
function rangeByHand(text: string) {
  const parsed = parseCidr(text);
  if (parsed?.family !== 4) return undefined;
  const start = parseIpv4Number(parsed.address, parsed.address.length);
  const cidr = `${parsed.address}/${parsed.prefixLength}`;
  return { start, end: start + 2 ** (32 - parsed.prefixLength), cidr };
}

const anyNumber = fc.nat({ max: 2 ** 32 - 1 });
const anyLength = fc.nat({ max: 32 });
const dotted = (bits: number): string => [24, 16, 8, 0].map((by) => Math.floor(bits / 2 ** by) % 256).join('.');

test('ipv4RangeOf: the library calculates what is calculated by hand', async (t) => {
  await assertLaw(
    t,
    (t) =>
      fc.property(anyNumber, anyLength, (bits, length) => {
        const size = 2 ** (32 - length);
        const start = Math.floor(bits / size) * size;
        const cidr = `${dotted(start)}/${length}`;
        t.deepEqual(ipv4RangeOf(cidr), rangeByHand(cidr));
        t.deepEqual(ipv4NetworkOf(dotted(bits), length), { start, end: start + size, cidr });
        t.is(ipv4CidrAt(start, length), cidr);
        t.is(ipv4RangeOf(`${dotted(bits)}/${length}`) === undefined, bits !== start);
      }),
    { numRuns: 2_000 },
  );
});

const ODD_TEXTS = [
  ...['', '/', '10.0.0.0', '10/8', '10.0/16', '10.0.0/24', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/33', '10.0.0.0/-1'],
  ...[
    '10.0.0.0/08',
    '10.0.0.0/008',
    '10.0.0.0/0008',
    '10.0.0.0/8.0',
    '10.0.0.0/1e1',
    '10.0.0.0/255.0.0.0',
    '10.0.0.1/8',
  ],
  ...['010.0.0.0/8', '10.00.0.0/16', '0x0a.0.0.0/8', '167772160/8', '256.0.0.0/8', '10.0.0.0.0/8', '10..0.0/8'],
  ...[' 10.0.0.0/8', '10.0.0.0/8 ', '10.0.0.0 /8', '10.0.0.0%eth0/8', '10.0.0.0/8%eth0', '\u0661\u0660.0.0.0/8'],
  ...['::ffff:10.0.0.0/104', '::10.0.0.0/104', 'fd00::/8', '::/0', '0.0.0.0/0', '255.255.255.255/32', '10.0.0.0/32'],
];

test('ipv4RangeOf: takes and refuses the texts that parseCidr does, odd ones too, also where the library takes more', async (t) => {
  for (const text of ODD_TEXTS) t.deepEqual(ipv4RangeOf(text), rangeByHand(text), text);
  const taken = ODD_TEXTS.filter((text) => ipv4RangeOf(text) !== undefined);
  t.deepEqual(taken, ['10.0.0.0/08', '10.0.0.0/008', '0.0.0.0/0', '255.255.255.255/32', '10.0.0.0/32']);
  t.true(ODD_TEXTS.some((text) => ipv4RangeOf(text) === undefined && Address4.isValid(text)));
  const part = fc.constantFrom('10', '0', '.', '/', '8', '32', '00', ':', ' ', '%', 'x', '255', '256', '-');
  await assertLaw(
    t,
    (t) =>
      fc.property(fc.array(part, { maxLength: 10 }), (parts) => {
        t.deepEqual(ipv4RangeOf(parts.join('')), rangeByHand(parts.join('')));
      }),
    { numRuns: 2_000 },
  );
});
