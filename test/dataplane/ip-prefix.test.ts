import test from 'ava';
import { networkPrefix } from '../../dataplane/ip-prefix.ts';

test('networkPrefix: host bits are zero, in either family', (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['10.112.3.4/16', '10.112.0.0/16'],
    ['10.111.255.255/12', '10.96.0.0/12'],
    ['10.96.0.1/32', '10.96.0.1/32'],
    ['255.255.255.255/0', '0.0.0.0/0'],
    ['192.168.255.255/23', '192.168.254.0/23'],
    ['FD00:0::FFFF/108', 'fd00::/108'],
    ['fd00::1/128', 'fd00::1/128'],
    ['fdff:ffff::1/9', 'fd80::/9'],
  ];
  for (const [given, expected] of cases) t.is(networkPrefix(given), expected);
});
