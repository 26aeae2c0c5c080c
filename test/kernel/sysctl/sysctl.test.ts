import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { createNetns, deleteNetns, type Netns } from '../../../netlink/netns.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';
import { disableIpv6, rpFilter } from '../../../sysctl/sysctl-key.ts';

function inNetns(run: (netns: Netns, name: string) => void): void {
  const name = `tke-test-${randomBytes(4).toString('hex')}`;
  const netns = createNetns(name);
  try {
    run(netns, name);
  } finally {
    netns.close();
    deleteNetns(name);
  }
}

// busybox has no sysctl that takes interface names with dots; the file read by cat in the namespace is the judge.
function catIn(name: string, path: string): string {
  return execFileSync('ip', ['netns', 'exec', name, 'cat', `/proc/sys/${path}`], { encoding: 'utf8' }).trim();
}

test.serial('openSysctl: writes in the namespace it was opened for and nowhere else', (t) => {
  inNetns((netns, name) => {
    const before = openSysctl().get(disableIpv6('lo'));
    openSysctl(netns).set(disableIpv6('lo'), '1');
    t.is(catIn(name, 'net/ipv6/conf/lo/disable_ipv6'), '1');
    t.is(openSysctl().get(disableIpv6('lo')), before);
  });
});

test.serial('Sysctl.set: reaches an interface whose name has dots', (t) => {
  inNetns((netns, name) => {
    execFileSync('ip', ['-n', name, 'link', 'add', 'eth0.100', 'type', 'veth', 'peer', 'name', 'a.b.c']);
    t.is(openSysctl(netns).set(rpFilter('eth0.100'), '2'), 'changed');
    t.is(catIn(name, 'net/ipv4/conf/eth0.100/rp_filter'), '2');
    t.is(openSysctl(netns).set(rpFilter('eth0.100'), '2'), 'unchanged');
  });
});
