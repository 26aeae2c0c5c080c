import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import test from 'ava';
import { buildFirewallChains } from '../../../inspection/firewall/build-firewall-chains.ts';
import type { Packet } from '../../../inspection/firewall/evaluate-chain.ts';
import { evaluateFirewallChain } from '../../../inspection/firewall/evaluate-firewall-chain.ts';
import { ifKnown, known } from '../../../inspection/node/known.ts';
import { readIptables } from '../../../inspection/node/read-iptables.ts';
import { readNftFacts } from '../../../inspection/node/read-nft-facts.ts';
import { RUNS } from '../../../sim/support/seed.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { withSeed } from '../../support/with-seed.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';

// What the evaluation of firewalls says of the first packet of a connection, beside what the kernel does with one: random
// rules stand between a client and a server whose port is closed, so that what passes is refused at once.

const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
/** How long the client waits for an answer; one takes less than a millisecond. */
const LOST_AFTER_MS = 150;

const CLIENT = '10.0.0.5';
const CLIENT6 = 'fd00::5';
const SERVER = '10.1.0.5';
const SERVER6 = 'fd01::5';
const PORT = 80;
const PACKETS: readonly Packet[] = [
  { family: 4, src: CLIENT, dst: SERVER, iifs: ['eni1'], oifs: ['eth1'] },
  { family: 6, src: CLIENT6, dst: SERVER6, iifs: ['eni1'], oifs: ['eth1'] },
];

function run({ name }: TestNetns, script: string): string {
  const args = ['netns', 'exec', name, 'sh', '-ec', script];
  return execFileSync('ip', args, { encoding: 'utf8', env: { PATH }, stdio: 'pipe' });
}

/** A client and a server with a router between them: `eni1` leads to the client, `eth1` to the server. */
class Scene implements Disposable {
  readonly router = new TestNetns();
  readonly #client = new TestNetns();
  readonly #server = new TestNetns();
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor() {
    const sides = [
      { end: this.#client, link: 'eni1', ip: CLIENT, gateway: '10.0.0.1', ip6: CLIENT6, gateway6: 'fd00::1' },
      { end: this.#server, link: 'eth1', ip: SERVER, gateway: '10.1.0.1', ip6: SERVER6, gateway6: 'fd01::1' },
    ];
    run(this.router, 'sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1');
    for (const { end, link, ip, gateway, ip6, gateway6 } of sides) {
      this.router.ip(`link add ${link} type veth peer name eth0 netns ${end.name}`);
      this.router.ip(`address add ${gateway}/24 dev ${link}`);
      this.router.ip(`address add ${gateway6}/64 dev ${link} nodad`);
      this.router.ip(`link set ${link} up`);
      end.ip('link set eth0 up');
      end.ip(`address add ${ip}/24 dev eth0`);
      end.ip(`address add ${ip6}/64 dev eth0 nodad`);
      end.ip(`route add default via ${gateway}`);
      end.ip(`-6 route add default via ${gateway6}`);
    }
    const program = `
      const { connect } = require('node:net');
      require('node:readline').createInterface({ input: process.stdin }).on('line', (host) => {
        const socket = connect({ host, port: ${PORT} });
        const end = (text) => { clearTimeout(timer); socket.destroy(); console.log(text); };
        const timer = setTimeout(() => end('lost'), ${LOST_AFTER_MS});
        socket.on('error', ({ code }) => end(code === 'ECONNREFUSED' ? 'passes' : 'lost'));
      });`;
    this.#process = spawn('ip', ['netns', 'exec', this.#client.name, process.execPath, '-e', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('the client has no output');
    this.#answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  /** Waits until packets flow: each link has to find its neighbours first. */
  async settle(): Promise<void> {
    for (const packet of PACKETS)
      await waitUntil(() => this.passes(packet), { what: `IPv${packet.family}`, everyMs: 50 });
  }

  /** Sends the first packet of a connection; returns whether it came to the server. */
  async passes({ dst }: Packet): Promise<boolean> {
    this.#process.stdin?.write(`${dst}\n`);
    return (await this.#answers.next()).value === 'passes';
  }

  [Symbol.dispose](): void {
    this.#process.stdin?.end();
    for (const netns of [this.router, this.#client, this.#server]) netns[Symbol.dispose]();
  }
}

/** Choices of a random test. */
function choices(seed: number) {
  const random = seededRandom(seed);
  return {
    chance: (share: number): boolean => random() < share,
    whole: (least: number, most: number): number => least + Math.floor(random() * (most - least + 1)),
    pick: <T>(list: readonly T[]): T => {
      const picked = list[Math.floor(random() * list.length)];
      if (picked === undefined) throw new RangeError('the list is empty');
      return picked;
    },
  };
}

/** Returns what all chains together make of the packet. */
async function judge(
  { netns }: TestNetns,
  packet: Packet,
): Promise<{ readonly outcome: string; readonly open: number }> {
  const { objects = [] } = ifKnown(await readNftFacts({ netnsPath: netns.path })) ?? {};
  const iptables = known(await readIptables({ netnsPath: netns.path, legacyTables: [] }));
  const chains = buildFirewallChains({ objects, iptables, queueListeners: known([]) });
  const verdicts = chains.map((chain) => evaluateFirewallChain(chain, packet));
  const outcome = ['dropped', 'maybe'].find((each) => verdicts.some((verdict) => verdict.outcome === each)) ?? 'passes';
  return { outcome, open: verdicts.flatMap(({ notEvaluated }) => notEvaluated).length };
}

const NFT_CONDITIONS = [
  'ip saddr 10.0.0.0/8',
  'ip saddr != 10.0.0.0/8',
  'ip daddr @servers',
  'ip daddr != @servers',
  'ip6 saddr fd00::/64',
  'ip saddr . ip daddr @pairs',
  'ip saddr . tcp dport { 10.0.0.5 . 80 }',
  'ip daddr . meta l4proto . th dport { 10.9.0.5 . tcp . 80 }',
  'iifname "eni*"',
  'oifname { "eth1", "eth2" }',
  'oifname "eth2"',
  'meta l4proto tcp',
  'meta l4proto { udp, icmp }',
  'ip protocol udp',
  'ip protocol != udp',
  'meta nfproto ipv6',
  'meta pkttype host',
  'meta pkttype multicast',
  'ct state new',
  'ct state established,related',
  'ct state invalid',
  'ct direction original',
  'tcp flags syn',
  'tcp flags ! syn',
  'tcp flags & (fin|syn|rst|ack) == syn',
  'tcp flags & (fin|syn|rst|psh|ack|urg) == 0',
  'tcp flags & (syn|ack) == syn|ack',
  'tcp flags != syn',
  'ip frag-off & 0x1fff != 0',
  'ip frag-off & 0x1fff == 0',
  'exthdr frag exists',
  'udp dport 80',
  'icmp type echo-request',
  'meta mark & 0x4000 == 0x4000',
  'tcp dport 80',
  'tcp dport 1-79',
  'th dport != 80',
  'meta length > 40',
  'meta length > 4000',
  'ip ttl > 3',
  'ip dscp cs1',
  'ip dscp != cs1',
  'meta mark 0x7',
  'meta mark != 0x7',
  'ct mark 0',
  'limit rate 1/hour burst 1 packets',
  'limit rate over 1000/second',
  'ct count over 100',
  'quota over 10 mbytes',
  '@th,16,16 80',
  'update @seen { ip saddr limit rate over 1000/second }',
  'rt mtu > 9000',
] as const;

const NFT_MAPS = [
  'ct state vmap { established : accept, invalid : drop }',
  'ct state vmap { new : drop, established : accept }',
  'ip saddr vmap @verdicts',
  'iifname vmap { "eni1" : jump a, "eth1" : drop }',
  'ip daddr . tcp dport vmap { 10.1.0.5 . 80 : drop }',
  'ip daddr . tcp dport vmap { 10.1.0.6 . 80 : drop }',
] as const;

const SETS = `
  set servers { type ipv4_addr; flags interval; elements = { 10.1.0.0/16, 10.7.0.1-10.7.0.9 } }
  set pairs { type ipv4_addr . ipv4_addr; elements = { 10.0.0.5 . 10.1.0.5 } }
  set seen { type ipv4_addr; size 100; flags dynamic,timeout; timeout 1m; }
  map verdicts { type ipv4_addr : verdict; flags timeout; elements = { 10.0.0.5 timeout 1h : drop, 10.0.0.6 : accept } }`;

test('a chain of nftables does with a packet what is said of it', async (t) => {
  t.timeout(120_000 * RUNS);
  await withSeed(t, async (seed) => {
    const random = choices(seed);
    using scene = new Scene();
    await scene.settle();
    const seen = { passes: 0, dropped: 0, maybe: 0 };
    const rule = (verdicts: readonly string[]): string => {
      if (random.chance(0.15)) return random.pick(NFT_MAPS);
      const conditions = Array.from({ length: random.whole(1, 2) }, () => random.pick(NFT_CONDITIONS));
      return [...conditions, random.pick(verdicts)].join(' ');
    };
    for (let at = 0; at < 60 * RUNS; at++) {
      const rules = (verdicts: readonly string[], most: number) =>
        Array.from({ length: random.whole(0, most) }, () => `    ${rule(verdicts)}`);
      const text = [
        'flush ruleset',
        `table inet fw {${SETS}`,
        '  chain a {',
        ...rules(['accept', 'drop', 'return'], 3).filter((each) => !each.includes('jump')),
        '  }',
        '  chain tried {',
        ...rules(['accept', 'drop', 'return', 'jump a', 'goto a'], 4),
        ...(random.chance(0.4) ? ['    drop'] : []),
        '  }',
        '  chain forward {',
        '    type filter hook forward priority 0; policy accept;',
        '    iifname "eni1" jump tried',
        '  }',
        '}',
      ].join('\n');
      try {
        run(scene.router, `nft -f - <<'END'\n${text}\nEND`);
      } catch {
        // Two conditions that contradict each other, as a field of IPv4 in a packet of IPv6: nft refuses the file.
        continue;
      }
      const packet = random.pick(PACKETS);
      const { outcome, open } = await judge(scene.router, packet);
      // A busy machine may answer late, so what is said to pass is tried twice.
      const passes = (await scene.passes(packet)) || (outcome === 'passes' && (await scene.passes(packet)));
      if (outcome === 'maybe') t.true(open > 0, `a reason is named:\n${text}`);
      else t.is(passes, outcome === 'passes', `IPv${packet.family}, said: ${outcome}\n${text}`);
      seen[outcome === 'maybe' ? 'maybe' : passes ? 'passes' : 'dropped'] += 1;
    }
    t.log(JSON.stringify(seen));
    t.true(Math.min(...Object.values(seen)) > 3, 'each verdict is met');
  });
});

const IPTABLES_CONDITIONS = [
  '-s 10.0.0.0/8',
  '! -s 10.0.0.0/8',
  '-d 10.9.0.0/16',
  '-o eth+',
  '! -o eth1',
  '-p udp',
  '-p tcp -m tcp --dport 80',
  '-p tcp -m tcp ! --dport 80',
  '-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN',
  '-p tcp -m tcp --tcp-flags ALL NONE',
  '-p tcp -m tcp ! --tcp-flags SYN,ACK SYN',
  '-p tcp -m tcp --tcp-option 2',
  '-f',
  '! -f',
  '-m conntrack --ctstate NEW',
  '-m conntrack --ctstate RELATED,ESTABLISHED',
  '-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT',
  '-m conntrack --ctdir ORIGINAL',
  '-m pkttype --pkt-type unicast',
  '-m pkttype ! --pkt-type broadcast',
  '-m addrtype --src-type LOCAL',
  '-m addrtype --dst-type LOCAL',
  '-m addrtype ! --dst-type UNICAST',
  '-m mark --mark 0x4000/0x4000',
  '-m mark --mark 0x8000/0x8000',
  '-m mark ! --mark 0x7',
  '-m comment --comment "-j DROP"',
  '-m length --length 1:39',
  '-m length --length 40:200',
  '-m ttl --ttl-gt 3',
  '-m limit --limit 1/hour --limit-burst 1',
  '-m multiport --dports 80,443',
  '-m u32 --u32 "0>>28=4"',
  '-m dscp ! --dscp 1',
] as const;

test('a chain of iptables does with a packet what is said of it', async (t) => {
  t.timeout(120_000 * RUNS);
  await withSeed(t, async (seed) => {
    const random = choices(seed);
    using scene = new Scene();
    await scene.settle();
    const seen = { passes: 0, dropped: 0, maybe: 0 };
    run(scene.router, 'iptables-nft -N a; iptables-nft -N tried; iptables-nft -A FORWARD -i eni1 -j tried');
    const refused = new Set<string>();
    const tried = IPTABLES_CONDITIONS.filter((condition) => {
      try {
        run(scene.router, `iptables-nft -A a ${condition} -j RETURN`);
        return true;
      } catch {
        refused.add(condition);
        return false;
      }
    });
    t.log(`matches that this kernel lacks: ${[...refused].join(', ') || 'none'}`);
    const [packet] = PACKETS;
    if (packet === undefined) throw new Error('there is no packet');
    for (let at = 0; at < 40 * RUNS; at++) {
      const rules = (chain: string, targets: readonly string[], most: number) =>
        Array.from(
          { length: random.whole(0, most) },
          () => `-A ${chain} ${random.pick(tried)} ${random.pick(targets)}`,
        );
      const text = [
        '*filter',
        ...['-F a', '-F tried'],
        ...rules('a', ['-j ACCEPT', '-j DROP', '-j RETURN'], 3),
        ...rules('tried', ['-j ACCEPT', '-j DROP', '-j RETURN', '-j a', '-g a'], 4),
        ...(random.chance(0.4) ? ['-A tried -j DROP'] : []),
        'COMMIT',
      ].join('\n');
      run(scene.router, `iptables-nft-restore --noflush <<'END'\n${text}\nEND`);
      const { outcome, open } = await judge(scene.router, packet);
      // A busy machine may answer late, so what is said to pass is tried twice.
      const passes = (await scene.passes(packet)) || (outcome === 'passes' && (await scene.passes(packet)));
      if (outcome === 'maybe') t.true(open > 0, `a reason is named:\n${text}`);
      else t.is(passes, outcome === 'passes', `said: ${outcome}\n${text}`);
      seen[outcome === 'maybe' ? 'maybe' : passes ? 'passes' : 'dropped'] += 1;
    }
    t.log(JSON.stringify(seen));
    t.true(Math.min(...Object.values(seen)) > 3, 'each verdict is met');
  });
});
