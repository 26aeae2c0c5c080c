import test from 'ava';
import { looksLikeAddress, parsePacketAddress } from '../../../inspection/explain/parse-packet-address.ts';

const ROUTED: readonly (readonly [word: string, address: string])[] = [
  ['10.0.1.5', '10.0.1.5'],
  ['FD00:10:0:2:0:0:0:3', 'fd00:10:0:2::3'],
  // The cloud answers here: instance data, name servers, time.
  ['169.254.0.23', '169.254.0.23'],
  ['169.254.0.2', '169.254.0.2'],
  ['255.255.255.254', '255.255.255.254'],
];

for (const [word, address] of ROUTED) {
  test(`parsePacketAddress: takes ${word}`, (t) => t.is(parsePacketAddress('--to', word), address));
}

const REFUSED: readonly (readonly [word: string, why: RegExp])[] = [
  ['10.0.1', /no IP address/],
  ['10.0.1.05', /no IP address/],
  ['10.0.1.5/32', /no IP address/],
  ['fe80::1%eth0', /no IP address/],
  ['example.com', /no IP address/],
  ['', /no IP address/],
  [' 10.0.1.5', /no IP address/],
  ['::ffff:10.0.1.5', /IPv4 address written as IPv6/],
  ['::FFFF:a00:105', /IPv4 address written as IPv6/],
  ['0.0.0.0', /no address/],
  ['::', /no address/],
  ['127.0.0.53', /loopback/],
  ['::1', /loopback/],
  ['224.0.0.1', /multicast/],
  ['239.255.255.255', /multicast/],
  ['ff02::1', /multicast/],
  ['255.255.255.255', /broadcast/],
  ['fe80::2', /one link/],
  ['169.254.1.1', /gateway/],
  ['fe80::1', /gateway/],
];

for (const [word, message] of REFUSED) {
  test(`parsePacketAddress: refuses ${JSON.stringify(word)}`, (t) => {
    const error = t.throws(() => parsePacketAddress('--from', word), { code: 'USAGE', message });
    t.true(error?.message.startsWith(`--from ${JSON.stringify(word)} `));
  });
}

test('looksLikeAddress: tells what was meant as an address from names', (t) => {
  const words = [
    '10.0.1',
    '10.0.1.5/32',
    'fe80::1%eth0',
    'fd00::/8',
    '::1',
    'web-0',
    'default/web-0',
    'eth0',
    'cafe',
    '',
  ];
  t.deepEqual(words.filter(looksLikeAddress), words.slice(0, 5));
});
