import test from 'ava';
import fc from 'fast-check';
import { anyIpAddress, isInCidr, parseCidr } from '../../crd/ip-text.ts';
import { Faults } from '../../runtime/decode.ts';
import { assertLaw } from '../support/law.ts';

const cidrs = test.macro((t, text: string, want: ReturnType<typeof parseCidr>) => t.deepEqual(parseCidr(text), want));
test('parseCidr: reads IPv4', cidrs, '10.0.8.0/22', { address: '10.0.8.0', prefixLength: 22, family: 4 });
test('parseCidr: reads IPv6 in its shortest spelling', cidrs, 'FD00:8:0::/64', {
  address: 'fd00:8::',
  prefixLength: 64,
  family: 6,
});
test('parseCidr: reads everything', cidrs, '0.0.0.0/0', { address: '0.0.0.0', prefixLength: 0, family: 4 });
test('parseCidr: reads a single address', cidrs, '::1/128', { address: '::1', prefixLength: 128, family: 6 });
test('parseCidr: reads dotted IPv6', cidrs, '::ffff:10.0.0.0/104', {
  address: '::ffff:10.0.0.0',
  prefixLength: 104,
  family: 6,
});
for (const text of [
  '10.0.8.1/22',
  '10.0.8.0',
  '10.0.8.0/33',
  '10.0.8.0/-1',
  '10.0.8.0/22/1',
  '10.0.8/24',
  '',
  'fd00::1/64',
  '/8',
  '10.0.0.0/',
  '::ffff:10.0.0.1/104',
  'fe80::%eth0/64',
]) {
  test(`parseCidr: refuses ${JSON.stringify(text)}`, cidrs, text, undefined);
}

test('isInCidr: agrees with arithmetic on every IPv4 address and length', async (t) => {
  await assertLaw(t, () =>
    fc.property(
      fc.integer({ min: 0, max: 0xffff_ffff }),
      fc.integer({ min: 0, max: 0xffff_ffff }),
      fc.integer({ min: 0, max: 32 }),
      (a, b, length) => {
        const size = 2 ** (32 - length);
        const network = Math.floor(b / size) * size;
        const want = a >= network && a < network + size;
        return isInCidr(dotted(a), `${dotted(network)}/${length}`) === want;
      },
    ),
  );
});

test('isInCidr: is false across families and for what is malformed', (t) => {
  t.false(isInCidr('10.0.0.1', '::/0'));
  t.false(isInCidr('x', '0.0.0.0/0'));
  t.false(isInCidr('10.0.0.1', '10.0.0.1/8'));
});

test('anyIpAddress: gives one spelling to one address', (t) => {
  const spell = (text: string) => anyIpAddress(text, '', new Faults());
  t.is(spell('FD00:0:0::0005'), 'fd00::5');
  t.is(spell('10.0.0.5'), '10.0.0.5');
  t.is(spell('10.0.0.05'), undefined);
  // A zone has a meaning on one machine only.
  t.is(spell('fe80::1%eth0'), undefined);
});

function dotted(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
}
