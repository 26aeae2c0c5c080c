import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { openSysctl } from '../../sysctl/sysctl.ts';
import { isSysctlError } from '../../sysctl/sysctl-error.ts';
import { ipForward, rpFilter, sysctlKey } from '../../sysctl/sysctl-key.ts';

function withRoot(run: (root: string) => void): void {
  const root = mkdtempSync(join(tmpdir(), 'tke-test-sysctl-'));
  try {
    mkdirSync(join(root, 'net/ipv4'), { recursive: true });
    writeFileSync(join(root, 'net/ipv4/ip_forward'), '0\n');
    run(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('Sysctl.set: says changed, then unchanged', (t) => {
  withRoot((root) => {
    const sysctl = openSysctl(undefined, root);
    t.is(sysctl.set(ipForward(), '1'), 'changed');
    t.is(sysctl.set(ipForward(), '1'), 'unchanged');
    t.is(readFileSync(join(root, 'net/ipv4/ip_forward'), 'utf8').trim(), '1');
  });
});

test('Sysctl.get: one space between several numbers', (t) => {
  withRoot((root) => {
    writeFileSync(join(root, 'net/ipv4/range'), '32768\t60999\n');
    t.is(openSysctl(undefined, root).get(sysctlKey('net', 'ipv4', 'range')), '32768 60999');
  });
});

test('Sysctl.get: names the key and the cause when it is not there', (t) => {
  withRoot((root) => {
    const error = t.throws(() => openSysctl(undefined, root).get(rpFilter('eth9.5')));
    t.true(isSysctlError(error, 'NO_SUCH_KEY'));
    t.is(
      error?.message,
      'sysctl net.ipv4.conf.eth9/5.rp_filter: cannot read: no such key; the interface is gone or the kernel lacks it',
    );
  });
});

test('Sysctl.find: undefined when the key is not there', (t) => {
  withRoot((root) => {
    t.is(openSysctl(undefined, root).find(rpFilter('eth9')), undefined);
    t.is(openSysctl(undefined, root).find(ipForward()), '0');
  });
});

test('Sysctl.setAll: returns one outcome for each pair', (t) => {
  withRoot((root) => {
    const pair = { key: ipForward(), value: '1' };
    t.deepEqual(openSysctl(undefined, root).setAll([pair, pair]), ['changed', 'unchanged']);
  });
});

test('Sysctl.set: NOT_TAKEN when another value is read back', (t) => {
  withRoot((root) => {
    symlinkSync('/dev/null', join(root, 'net/ipv4/deaf'));
    const error = t.throws(() => openSysctl(undefined, root).set(sysctlKey('net', 'ipv4', 'deaf'), '1'));
    t.true(isSysctlError(error, 'NOT_TAKEN'));
    t.regex(error?.message ?? '', /^sysctl net\.ipv4\.deaf: wrote 1, the kernel kept /);
  });
});
