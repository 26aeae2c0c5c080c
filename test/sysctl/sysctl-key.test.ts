import test from 'ava';
import { isSysctlError } from '../../sysctl/sysctl-error.ts';
import { acceptRa, forwarding, parseSysctlName, rpFilter, sysctlKey, sysctlName } from '../../sysctl/sysctl-key.ts';

const names = test.macro((t, name: string, path: readonly string[]) => {
  t.deepEqual(parseSysctlName(name).path, path);
});

test('parseSysctlName: dots separate', names, 'net.ipv4.ip_forward', ['net', 'ipv4', 'ip_forward']);
test('parseSysctlName: slashes separate when they come first', names, 'net/ipv4/conf/eth0.100/rp_filter', [
  'net',
  'ipv4',
  'conf',
  'eth0.100',
  'rp_filter',
]);
test('parseSysctlName: a slash is the dot of a name when dots separate', names, 'net.ipv4.conf.eth0/100.rp_filter', [
  'net',
  'ipv4',
  'conf',
  'eth0.100',
  'rp_filter',
]);

test('sysctlName: is read back as the same key when an interface name has dots', (t) => {
  for (const key of [rpFilter('eth0'), rpFilter('eth0.100'), acceptRa('a.b.c'), forwarding(6, 'all')]) {
    t.deepEqual(parseSysctlName(sysctlName(key)), key);
  }
  t.is(sysctlName(rpFilter('eth0.100')), 'net.ipv4.conf.eth0/100.rp_filter');
});

const refused = test.macro((t, make: () => unknown) => {
  const error = t.throws(make);
  t.true(isSysctlError(error, 'INVALID_NAME'));
});

test('rpFilter: refuses a name with a slash, which would name another file', refused, () => rpFilter('../all'));
test('rpFilter: refuses a name longer than an interface can have', refused, () => rpFilter('sixteen-bytes-xx'));
test('sysctlKey: refuses to leave /proc/sys', refused, () => sysctlKey('net', '..', '..', 'sysrq-trigger'));
test('sysctlKey: refuses an empty path', refused, () => sysctlKey());
