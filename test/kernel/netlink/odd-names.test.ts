import { execFileSync } from 'node:child_process';
import test from 'ava';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { decodeByteText, showByteText } from '../../../runtime/byte-text.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';
import { forwarding, rpFilter } from '../../../sysctl/sysctl-key.ts';
import { TestNetns } from './support/test-netns.ts';

// The kernel takes nearly any bytes as a name: dev_valid_name(). `ls` of the folder of settings is the judge.

const NAMES: readonly (readonly [what: string, hex: string])[] = [
  ['bytes that no UTF-8 text has', 'fffe'],
  ['the longest', 'ff'.repeat(15)],
  ['half a character', '65746830c3'],
  ['a character', 'c3a9'],
  ['an escape sequence', '701b5b324a078f'],
  ['quotes, a wildcard and a backslash', '22272a5c'],
  ['white space of Unicode only', 'e38080'],
  ['a byte order mark', 'efbbbf78'],
];
const nameOf = (hex: string) => decodeByteText(Buffer.from(hex, 'hex'));

/** The links of a namespace without the tunnels that some kernels put into each. */
function namesIn(host: TestNetns): readonly string[] {
  const listing = execFileSync('ip', ['netns', 'exec', host.name, 'ls', '-1', '/proc/sys/net/ipv4/conf']);
  return decodeByteText(listing).split('\n');
}

for (const [what, hex] of NAMES) {
  test(`link names: ${what} is made, read, set and looked up by our own requests`, (t) => {
    using host = new TestNetns();
    const ifname = nameOf(hex);
    const ifindex = host.rtnl.link.add({ kind: 'bridge', ifname });
    t.is(host.rtnl.link.get({ ifindex })?.ifname, ifname);
    t.is(host.rtnl.link.get({ ifname })?.ifindex, ifindex);
    host.rtnl.rule.add({ family: AF_INET, iifname: ifname, priority: 100, table: 4001 });
    t.is(host.rtnl.rule.list({ family: AF_INET, priority: 100 })[0]?.iifname, ifname);
    host.rtnl.link.set({ ifindex, ifname: 'plain' });
    host.rtnl.link.set({ ifindex, ifname });
    t.true(namesIn(host).includes(ifname));
  });

  test(`sysctl: of a link whose name is ${what}`, (t) => {
    using host = new TestNetns();
    const ifname = nameOf(hex);
    host.rtnl.link.add({ kind: 'bridge', ifname });
    const sysctl = openSysctl(host.netns);
    sysctl.set(rpFilter(ifname), '2');
    t.is(sysctl.get(rpFilter(ifname)), '2');
    t.is(sysctl.find(forwarding(6, ifname)), '0');
    t.is(sysctl.find(rpFilter('gone')), undefined);
  });
}

test('link names: alias and alternative names are bytes too', (t) => {
  using host = new TestNetns();
  const ifindex = host.rtnl.link.add({ kind: 'bridge', ifname: 'b0', ifalias: nameOf('74ff') });
  t.is(host.rtnl.link.get({ ifindex })?.ifalias, nameOf('74ff'));
  const script = `ip -n ${host.name} link property add dev b0 altname "$(printf '\\377alt')"`;
  execFileSync('sh', ['-c', script]);
  t.deepEqual(host.rtnl.link.get({ ifindex })?.altNames?.map(showByteText), ['\\xffalt']);
});
