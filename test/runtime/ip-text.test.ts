import test from 'ava';
import { canonicalIp, parseIp, sharePrefix } from '../../runtime/ip-text.ts';
import { seedOf } from '../../sim/support/seed.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { hasIpv4Form, type Prints, printsOf, randomAddress } from './address-oracles.ts';

const prints = test.macro({
  exec: (t, text: string, wanted: Prints) => t.deepEqual(printsOf(text), wanted),
  title: (_, text: string) => `address texts: ${JSON.stringify(text)}`,
});
const alike = (text: string): Prints => ({ own: text, library: text, node: text });

test(prints, '10.0.0.5', alike('10.0.0.5'));
test(prints, '::', alike('::'));
test(prints, '1::', alike('1::'));
test(prints, 'FD00::ABCD', alike('fd00::abcd'));
test(prints, '0001:00::0', alike('1::'));
test(prints, '1:0:0:2:0:0:0:3', alike('1:0:0:2::3'));
test(prints, '1:0:0:2:0:0:3:4', alike('1::2:0:0:3:4'));
test(prints, '1:0:2:3:4:5:6:7', alike('1:0:2:3:4:5:6:7'));
test(prints, '::1:2:3:4:5:6:7', alike('0:1:2:3:4:5:6:7'));
test(prints, '64:ff9b::1.2.3.4', alike('64:ff9b::102:304'));
test(prints, '::ffff:10.0.0.5', { ...alike('::ffff:10.0.0.5'), library: '::ffff:a00:5' });
test(prints, '::10.0.0.5', { ...alike('::a00:5'), node: '::10.0.0.5' });

for (const text of [
  ...['', '10.0.0', '10.0.0.256', '10.0.0.05', '010.0.0.5', '10.0.0.5 ', '1.2.3.4.5', '0x10.0.0.5', '1.2.3.-4'],
  ...[
    'fe80::1%eth0',
    '00001::',
    'fd00::g',
    '1::2::3',
    '1:::2',
    ':1::',
    '::1 ',
    '[::1]',
    'fd00::5/64',
    '::ffff:010.0.0.5',
  ],
  ...['1.2.3.4::', '1.2.3.4::1', '::1.2.3.4:5', '1:2:3:4:5:1.2.3.4', '1:2:3:4:5:6:7:8:9'],
]) {
  test(prints, text, {});
}

test('address texts: random ones are read and printed alike by ours, Node and ip-address', (t) => {
  const random = seededRandom(seedOf('address texts'));
  for (let index = 0; index < 5_000; index++) {
    const text = randomAddress(random);
    const { own, library, node } = printsOf(text);
    t.is(typeof node, typeof own, text);
    if (own !== undefined && hasIpv4Form(own)) continue;
    if (library !== own || node !== own) t.deepEqual({ own, library, node }, alike(own ?? ''), text);
  }
});

test('canonicalIp: is the form of its own result', (t) => {
  for (const text of ['::ffff:a00:5', 'FE80:0::1', '10.0.0.1']) {
    const printed = canonicalIp(text) ?? '';
    t.is(canonicalIp(printed), printed);
  }
});

test('sharePrefix: compares bits, and no two families', (t) => {
  const bytesOf = (text: string): Uint8Array => parseIp(text) ?? new Uint8Array();
  t.true(sharePrefix(bytesOf('10.0.8.1'), bytesOf('10.0.11.255'), 22));
  t.false(sharePrefix(bytesOf('10.0.8.1'), bytesOf('10.0.12.0'), 22));
  t.true(sharePrefix(bytesOf('fd00::1'), bytesOf('fd00::2'), 126));
  t.false(sharePrefix(bytesOf('fd00::1'), bytesOf('fd00::2'), 127));
  t.false(sharePrefix(bytesOf('0.0.0.0'), bytesOf('::'), 0));
});
