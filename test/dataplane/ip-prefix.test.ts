import test from 'ava';
import { isHostPrefix, networkPrefix, withoutHostLength } from '../../dataplane/ip-prefix.ts';

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

test('isHostPrefix: the length decides, with the family', (t) => {
  for (const prefix of ['10.0.0.1/32', '2001:db8::1/128']) t.true(isHostPrefix(prefix), prefix);
  for (const prefix of ['10.0.0.0/31', '2001:db8::/32', '::/0', undefined]) t.false(isHostPrefix(prefix), prefix);
});

test('withoutHostLength: a network keeps its length', (t) => {
  const cases = { '10.0.0.1/32': '10.0.0.1', '2001:db8::1/128': '2001:db8::1', '2001:db8::/32': '2001:db8::/32' };
  for (const [given, expected] of Object.entries(cases)) t.is(withoutHostLength(given), expected);
});
