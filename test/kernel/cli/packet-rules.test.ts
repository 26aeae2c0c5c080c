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
