import { execFileSync } from 'node:child_process';
import test from 'ava';
import { findPacketRules } from '../../../inspection/firewall/find-packet-rules.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import { readNftFacts } from '../../../inspection/node/read-nft-facts.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';

// Rules that judge each packet by itself, as nft(8) and iptables-nft(8) list what the kernel has.

const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';

function run({ name }: TestNetns, script: string): string {
  return execFileSync('ip', ['netns', 'exec', name, 'sh', '-ec', script], { encoding: 'utf8', env: { PATH } });
}

/** What is found in rules of nft, a line a chain. */
async function inNft(rules: string): Promise<readonly string[]> {
  using netns = new TestNetns();
  run(netns, `nft -f - <<'END'\n${rules}\nEND`);
  const { objects = [] } = ifKnown(await readNftFacts({ netnsPath: netns.netns.path })) ?? {};
  const found = findPacketRules({ objects, iptables: unknown('not read', '') });
  for (const { show } of found) run(netns, show);
  return found.map(({ name, kinds }) => `${name} (${kinds.join(', ')})`);
}

const forward = (...rules: readonly string[]): string => `
table inet fw {
  map dispatch { type ifname : verdict; elements = { "eni1" : jump guests } }
  set seen { type ipv4_addr; size 100; flags dynamic,timeout; timeout 1m; }
  chain logs {
    limit rate 3/minute log prefix "x"
  }
  chain guests {
    ip saddr 10.0.0.0/8 limit rate over 10/second drop
  }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ${rules.join('\n    ')}
  }
}`;

for (const [what, rules, found] of [
  ['a limit', ['limit rate over 10/second drop'], ['chain inet fw forward (limit)']],
  [
    'a quota and a limit',
    ['quota over 10 mbytes drop', 'limit rate 1/second accept'],
    ['chain inet fw forward (limit, quota)'],
  ],
  ['bytes of the connection', ['ct bytes > 100000 drop'], ['chain inet fw forward (ct bytes)']],
  ['chance', ['numgen random mod 100 < 1 drop'], ['chain inet fw forward (numgen)']],
  ['the TTL', ['ip ttl set 3'], ['chain inet fw forward (ttl)']],
  ['a chain below', ['ip daddr 10.0.0.0/8 jump guests'], ['chain inet fw guests (limit)']],
  ['a chain of a map', ['iifname vmap { "eth0" : jump guests }'], ['chain inet fw guests (limit)']],
  [
    'behind other accepted packets',
    ['ct state established tcp dport 80 accept', 'limit rate 1/second accept'],
    ['chain inet fw forward (limit)'],
  ],
  ['a limit of what is logged', ['limit rate 3/minute log', 'jump logs'], []],
  ['new connections', ['ct state new limit rate 5/second accept', 'ct state != established jump guests'], []],
  ...[
    'meta length > 100',
    'ip length > 100',
    'ip ttl < 5',
    'ip6 hoplimit < 5',
    'ip dscp cs1',
    'ip ecn ce',
    'ip id 7',
    'ether saddr 02:00:00:00:00:01',
    'tcp window 0',
    'tcp sequence 7',
    'tcp flags psh',
    'tcp option maxseg exists',
    'meta hour "12:00"-"13:00"',
    'meta day "Sunday"',
    'meta random < 100',
    'meta priority 1:1',
    'ct avgpkt > 100',
    'ct expiration > 1h',
    '@th,96,8 7',
    'ct count over 10',
  ].map((condition) => {
    const name =
      condition === 'ct count over 10'
        ? 'ct count'
        : condition.replace(/ (?:over|[<>]|cs1|ce|7|0|exists|psh|02|echo|"|1).*/, '');
    return [condition, [`${condition} drop`], [`chain inet fw forward (${name})`]] as const;
  }),
  [
    'a set that a rule fills',
    ['update @seen { ip saddr limit rate over 10/second } drop'],
    ['chain inet fw forward (limit)'],
  ],
  ['a chain of a named map', ['iifname vmap @dispatch'], ['chain inet fw guests (limit)']],
  ['a key of a map', ['meta length vmap { 0-100 : accept }'], ['chain inet fw forward (meta length)']],
  ['a field that is rewritten', ['ip dscp set cs1'], ['chain inet fw forward (ip dscp set)']],
  [
    'what is the same for all packets of a flow',
    [
      'iifname "eni*" oifname { "eth0", "eth1" } accept',
      'ip saddr 10.0.0.0/8 ip daddr . tcp dport { 10.0.0.1 . 80 } drop',
      'meta l4proto { tcp, udp } th dport 1-1024 ct state established,related accept',
      'ct direction reply ct mark 7 meta mark & 0xff == 7 drop',
      'fib daddr type local drop',
      'tcp flags & (fin|syn|rst|psh|ack|urg) == 0 drop',
      'tcp flags & (fin|syn|rst|ack) == syn drop',
      'tcp flags syn limit rate over 10/second drop',
      'meta mark set ct mark',
      'meta skuid 0 meta nfproto ipv4 drop',
      'icmp type echo-request limit rate 5/second accept',
      'meta l4proto { icmp, ipv6-icmp } limit rate 5/second accept',
      'ip protocol icmp limit rate 5/second accept',
    ],
    [],
  ],
  ['behind established ones', ['ct state established,related accept', 'limit rate over 1/second drop'], []],
  ['behind a map of them', ['ct state vmap { established : accept, invalid : drop }', 'quota over 10 mbytes drop'], []],
] as const)
  test(`findPacketRules: nftables, ${what}`, async (t) => {
    t.deepEqual(await inNft(forward(...rules)), [...found]);
  });

test('findPacketRules: nftables, every place on the way of a forwarded packet, and no other', async (t) => {
  const chain = (name: string, type: string, hook: string) =>
    `chain ${name} {\n type ${type} hook ${hook} priority 10;\n limit rate over 10/second drop\n }\n`;
  const of = (table: string, text: string) => `table inet ${table} {\n${text}}\n`;
  const others = chain('in', 'filter', 'input') + chain('out', 'filter', 'output') + chain('nat', 'nat', 'prerouting');
  t.deepEqual(
    await inNft(of('a', chain('pre', 'filter', 'prerouting') + chain('post', 'filter', 'postrouting') + others)),
    ['chain inet a pre (limit)', 'chain inet a post (limit)'],
  );
  t.deepEqual(await inNft(of('tke_eni', chain('pre', 'filter', 'prerouting'))), []);
});

const APPEND = 'iptables-nft -A FORWARD';

for (const [what, commands, found] of [
  ['a limit', [`${APPEND} -m limit --limit 1/s -j ACCEPT`], ['chain FORWARD of iptables-nft (limit)']],
  ...[
    '-m length --length 100:200',
    '-m ttl --ttl-lt 5',
    '-m dscp --dscp 1',
    '-m tos --tos 0x10',
    '-m ecn --ecn-ip-ect 1',
    '-m mac --mac-source 02:00:00:00:00:01',
    '-m u32 --u32 0>>28=4',
    '-m time --timestart 01:00',
    '-m recent --name x --rcheck',
    '-m connlimit --connlimit-above 5',
    '-m hashlimit --hashlimit-above 5/s --hashlimit-name x',
    '-m connbytes --connbytes 10: --connbytes-dir both --connbytes-mode packets',
  ].map((match) => {
    const [, name] = / -m (\w+)/.exec(` ${match}`) ?? [];
    return [
      match,
      [`${APPEND} ${match.replace('>>', "'>>'")} -j DROP`],
      [`chain FORWARD of iptables-nft (${name})`],
    ] as const;
  }),
  ['a flag', [`${APPEND} -p tcp --tcp-flags PSH PSH -j DROP`], ['chain FORWARD of iptables-nft (tcp-flags)']],
  [
    'a target',
    ['iptables-nft -t mangle -A FORWARD -j DSCP --set-dscp 1'],
    ['chain FORWARD of iptables-nft, table mangle (DSCP)'],
  ],
  [
    'what is the same for all packets of a flow',
    [
      `${APPEND} -s 10.0.0.0/8 -o eth0 -p tcp --dport 80 -m comment --comment x -j DROP`,
      `${APPEND} -m mark --mark 7 -m addrtype --dst-type LOCAL -j ACCEPT`,
      `${APPEND} -p tcp --syn -m limit --limit 1/s -j ACCEPT`,
      `${APPEND} -p tcp --tcp-flags ALL NONE -j DROP`,
      `${APPEND} -p icmp -m icmp --icmp-type 8 -m limit --limit 5/s -j ACCEPT`,
      'iptables-nft -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu',
    ],
    [],
  ],
  ['chains without rules', ['iptables-nft -N DOCKER-USER', `${APPEND} -j DOCKER-USER`], []],
  [
    'copies',
    ['iptables-nft -t mangle -A POSTROUTING -j TEE --gateway 10.0.0.9'],
    ['chain POSTROUTING of iptables-nft, table mangle (TEE)'],
  ],
  [
    'a chain below, and other tables',
    [
      'iptables-nft -N GUESTS',
      `${APPEND} -s 10.0.0.0/8 -j GUESTS`,
      'iptables-nft -A GUESTS -m statistic --mode random --probability 0.5 -j DROP',
      'ip6tables-nft -t mangle -A POSTROUTING -j HL --hl-set 5',
    ],
    ['chain GUESTS of iptables-nft (statistic)', 'chain POSTROUTING of ip6tables-nft, table mangle (HL)'],
  ],
  [
    'a limit of what is logged, new connections, and Services',
    [
      `${APPEND} -m limit --limit 1/s -j LOG`,
      `${APPEND} -m conntrack --ctstate NEW -m limit --limit 1/s -j ACCEPT`,
      'iptables-nft -t nat -A PREROUTING -m statistic --mode random --probability 0.5 -j ACCEPT',
    ],
    [],
  ],
  [
    'behind established ones',
    [`${APPEND} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`, `${APPEND} -j NFQUEUE --queue-num 5`],
    [],
  ],
] as const)
  test(`findPacketRules: iptables, ${what}`, async (t) => {
    using netns = new TestNetns();
    run(netns, commands.join('\n'));
    const lines = run(netns, 'iptables-nft-save; ip6tables-nft-save').split('\n');
    const { objects = [] } = ifKnown(await readNftFacts({ netnsPath: netns.netns.path })) ?? {};
    const iptables = known({ legacy: known([]), nft: known(lines.filter((line) => line !== '')) });
    const seen = findPacketRules({ objects, iptables });
    t.deepEqual(
      seen.map(({ name, kinds }) => `${name} (${kinds.join(', ')})`),
      [...found],
    );
    for (const { show } of seen) run(netns, show);
  });
