/**
 * Makes test/capture/*.hex: netlink messages as iproute2 sends them and the kernel answers, taken with strace in
 * fresh network namespaces. Run as root: `node tools/capture.ts [name…]`; without names all are made again. Our own encoder and decoder have no part in it.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { bpfObject } from '../test/support/bpf-object.ts';

type Capture = {
  readonly name: string;
  readonly setup?: readonly string[];
  /** Command that is watched; `$NS` is the namespace, `$PEER` another one, `$OBJ` a file with an eBPF program. */
  readonly command: string;
  /** Sent by iproute2, or received from the kernel. */
  readonly direction: 'request' | 'answer';
  /** nlmsg_type to take. */
  readonly type: number;
  /** Which of the messages of that type, from 0. */
  readonly nth?: number;
  /** Address of the namespace's loopback that has a TCP connection from it to itself, port 50001 to 61677, meanwhile. */
  readonly connectedOn?: string;
};

const VETH = 'ip -n $NS link add v0 address 02:00:00:00:00:01 type veth peer name v1 address 02:00:00:00:00:02';
const UP = ['ip -n $NS link set v0 up', 'ip -n $NS link set v1 up'];
const V4 = 'ip -n $NS addr add 10.0.0.9/24 dev v0';

const CLSACT = 'tc -n $NS qdisc add dev v0 clsact';
const FILTER = 'ingress pref 84 protocol all handle 1 bpf';
const OBJECT = 'object-file $OBJ section tc';
const ADD_FILTER = `tc -n $NS filter add dev v0 ${FILTER} direct-action ${OBJECT}`;

/** Connections are tracked where somebody asks for their state. */
const TRACKED = [
  'ip netns exec $NS nft add table inet t',
  'ip netns exec $NS nft add chain inet t o { type filter hook output priority 0 ; }',
  'ip netns exec $NS nft add rule inet t o ct state new accept',
];
const IN_ZONE =
  'ip netns exec $NS conntrack -I -s 10.0.0.1 -d 10.0.0.2 -p tcp --sport 5001 --dport 80 --state ESTABLISHED -u SEEN_REPLY,ASSURED -t 3000 -w 7';

const CAPTURES: readonly Capture[] = [
  ask('rule-add-from', 32, 'rule add from 10.0.1.50 lookup 4007 pref 1536 protocol 84'),
  ask('rule-add-fwmark', 32, 'rule add fwmark 0x50000/0xff0000 lookup 100 pref 1537'),
  ask('rule-add-v6', 32, '-6 rule add to fd00::/64 iif lo oif v0 lookup main pref 7 suppress_prefixlength 0', [VETH]),
  ask('rule-add-ports', 32, 'rule add ipproto tcp dport 80-90 sport 1024-65535 uidrange 5-9 pref 8 unreachable'),
  ask('rule-add-not-goto', 32, 'rule add not to 10.0.0.0/8 pref 9 goto 1000'),
  ask('rule-del', 33, 'rule del pref 1536', ['ip -n $NS rule add from 10.0.1.50 lookup 4007 pref 1536']),
  ask('route-add-host', 24, 'route add 10.0.1.50/32 dev v0 table 3999 proto 84 scope link', [VETH, ...UP]),
  ask('route-add-device', 24, 'route add 10.3.0.0/16 dev v0', [VETH, ...UP]),
  ask(
    'route-add-onlink',
    24,
    'route add default via 10.7.0.1 dev v0 table 100 src 10.0.0.9 metric 7 onlink mtu 1400 advmss 1360',
    [VETH, ...UP, V4],
  ),
  ask('route-add-blackhole', 24, 'route add blackhole 10.66.0.0/16'),
  ask('route-replace-v6', 24, '-6 route replace fd00:1::/64 via fe80::1 dev v0', [VETH, ...UP]),
  ask('route-add-via-inet6', 24, 'route add 10.9.0.0/16 via inet6 fe80::1 dev v0', [VETH, ...UP]),
  ask('route-add-multipath', 24, 'route add 10.8.0.0/16 nexthop via 10.0.0.1 dev v0 weight 2 nexthop dev v1', [
    VETH,
    ...UP,
    V4,
  ]),
  ask('route-del', 25, 'route del 10.0.1.50/32 dev v0 table 3999', [
    VETH,
    ...UP,
    'ip -n $NS route add 10.0.1.50/32 dev v0 table 3999',
  ]),
  ask('route-get', 26, 'route get 10.0.0.77 from 10.0.0.9 oif v0 mark 0x80', [VETH, ...UP, V4]),
  ask('address-add-v4', 20, 'addr add 10.0.1.50/32 dev v0', [VETH]),
  ask('address-add-label', 20, 'addr add 10.0.1.51/24 broadcast 10.0.1.255 dev v0 label v0:a scope link', [VETH]),
  ask('address-add-peer', 20, 'addr add 10.0.1.1 peer 10.0.1.2/32 dev v0 noprefixroute metric 50', [VETH]),
  ask('address-add-v6', 20, 'addr add fd00::50/128 dev v0 nodad', [VETH]),
  ask('address-del', 21, 'addr del 10.0.0.9/24 dev v0', [VETH, V4]),
  ask('neigh-replace', 28, 'neigh replace 169.254.1.1 lladdr 02:00:00:00:00:03 dev v0 nud permanent', [VETH, ...UP]),
  ask('neigh-del', 29, 'neigh del 169.254.1.1 dev v0', [
    VETH,
    ...UP,
    'ip -n $NS neigh add 169.254.1.1 lladdr 02:00:00:00:00:03 dev v0',
  ]),
  ask(
    'link-add-veth',
    16,
    'link add name eni0 index 70 address 02:00:00:00:00:0a mtu 1400 group 4007 txqueuelen 500 up type veth peer name eth0 index 71 address 02:00:00:00:00:0b mtu 1400',
  ),
  ask('link-add-bridge', 16, 'link add name cbr0 type bridge forward_delay 200 stp_state 0'),
  ask('link-set-up', 16, 'link set dev v0 up', [VETH]),
  ask('link-set-many', 16, 'link set dev v0 mtu 1300 address 02:00:00:00:00:0c group 9 alias tke/x txqueuelen 7', [
    VETH,
  ]),
  ask('link-set-nomaster', 16, 'link set dev v0 nomaster', [VETH]),
  ask('link-set-promisc-off', 16, 'link set dev v0 promisc off', [VETH]),
  ask('link-set-hairpin', 16, 'link set dev v0 type bridge_slave hairpin on', [
    VETH,
    'ip -n $NS link add br0 type bridge',
    'ip -n $NS link set v0 master br0',
  ]),
  ask('link-rename', 16, 'link set dev v0 name eth7', [VETH]),
  ask('link-del', 17, 'link del dev v0', [VETH]),
  answer('route-host', 24, 'route show table 3999', [
    VETH,
    ...UP,
    'ip -n $NS route add 10.0.1.50/32 dev v0 table 3999 proto 84 scope link',
  ]),
  answer('route-default', 24, 'route show table 100', [
    VETH,
    ...UP,
    V4,
    'ip -n $NS route add default via 10.7.0.1 dev v0 table 100 src 10.0.0.9 metric 7 onlink mtu 1400 advmss 1360',
  ]),
  answer('route-multipath', 24, 'route show table 101', [
    VETH,
    ...UP,
    V4,
    'ip -n $NS route add 10.8.0.0/16 table 101 nexthop via 10.0.0.1 dev v0 weight 2 nexthop via inet6 fe80::1 dev v1',
  ]),
  answer('route-v6', 24, '-6 route show table 102', [
    VETH,
    ...UP,
    'ip -n $NS -6 route add fd00:1::/64 via fe80::1 dev v0 table 102 metric 5',
  ]),
  answer('route-got', 24, 'route get fibmatch 10.0.0.77', [VETH, ...UP, V4]),
  answer('rule-from', 32, 'rule show', ['ip -n $NS rule add from 10.0.1.50 lookup 4007 pref 1536 protocol 84'], 1),
  answer('rule-fwmark', 32, 'rule show', ['ip -n $NS rule add fwmark 0x50000/0xff0000 lookup 100 pref 7'], 1),
  answer('rule-v6', 32, '-6 rule show', ['ip -n $NS -6 rule add to fd00::/64 iif lo lookup main pref 7'], 1),
  answer('address-v4', 20, '-4 addr show dev v0', [VETH, V4]),
  answer('address-v6', 20, '-6 addr show dev v0', [VETH, 'ip -n $NS addr add fd00::50/128 dev v0 nodad']),
  answer('neigh', 28, 'neigh show dev v0 nud permanent', [
    VETH,
    ...UP,
    'ip -n $NS neigh add 169.254.1.1 lladdr 02:00:00:00:00:03 dev v0',
  ]),
  answer('netconf', 80, '-4 netconf show dev v0', [VETH]),
  answer('netconf-v6', 80, '-6 netconf show dev v0', [VETH]),
  answer('link-veth', 16, 'link show dev v0', [
    'ip -n $NS link add v0 address 02:00:00:00:00:01 group 4007 type veth peer name v1 netns $PEER',
    'ip -n $NS link set dev v0 alias tke/x',
  ]),
  answer('link-bridge', 16, 'link show dev br0', ['ip -n $NS link add br0 address 02:00:00:00:00:04 type bridge']),
  answer('link-bridge-port', 16, '-d link show dev v0', [
    VETH,
    ...UP,
    'ip -n $NS link add br0 type bridge',
    'ip -n $NS link set br0 up',
    'ip -n $NS link set v0 master br0',
    'ip -n $NS link set v0 type bridge_slave cost 7 hairpin on isolated on',
  ]),
  answer('link-vxlan', 16, '-d link show dev vx0', [
    VETH,
    'ip -n $NS link add vx0 type vxlan id 42 local 10.0.0.9 dev v0 dstport 4789 srcport 1000 2000 ttl 5',
  ]),
  answer('link-macvlan', 16, '-d link show dev mv0', [VETH, 'ip -n $NS link add mv0 link v0 type macvlan mode bridge']),
  answer('link-tap', 16, '-d link show dev tap0', ['ip -n $NS tuntap add dev tap0 mode tap user 7']),
  answer('link-altname', 16, '-d link show dev v0', [
    VETH,
    'ip -n $NS link property add dev v0 altname another-name-of-v0',
    'ip -n $NS link set dev v0 addrgenmode none',
  ]),
  answer('address-lifetime', 20, '-6 addr show dev v0', [
    VETH,
    'ip -n $NS addr add fd00::50/64 dev v0 nodad valid_lft 5000 preferred_lft 3000',
  ]),
  answer('neigh-learned', 28, 'neigh show dev v0', [
    VETH,
    ...UP,
    'ip -n $NS neigh add 10.0.0.78 lladdr 02:00:00:00:00:02 dev v0 nud stale extern_learn protocol 84',
  ]),
  answer('route-expires', 24, '-6 route show table 102', [
    VETH,
    ...UP,
    'ip -n $NS -6 route add fd00:2::/64 via fe80::1 dev v0 table 102 expires 5000 pref high congctl reno',
  ]),
  tc('clsact-add.request', 36, 'qdisc add dev v0 clsact', [VETH]),
  tc('clsact-del.request', 37, 'qdisc del dev v0 clsact', [VETH, CLSACT]),
  tc('clsact.answer', 36, 'qdisc show dev v0', [VETH, CLSACT]),
  tc('filter-replace.request', 44, `filter replace dev v0 ${FILTER} direct-action ${OBJECT}`, [VETH, CLSACT]),
  tc('filter-del.request', 45, `filter del dev v0 ${FILTER}`, [VETH, CLSACT, ADD_FILTER]),
  // The first message is about the chain of the filter.
  tc('filter.answer', 44, 'filter show dev v0 ingress', [VETH, CLSACT, ADD_FILTER], 1),
  socket('sock-diag.request', 20, '127.0.0.1', '-4Htn'),
  // Names one socket, as our look-up does; the kernel may refuse to end it.
  socket('sock-destroy.request', 21, '127.0.0.1', '-4HtnK'),
  socket('sock-diag.answer', 20, '127.0.0.1', '-4Htnep'),
  socket('sock-diag-v6.answer', 20, '::1', '-6Htne'),
  conntrack('conntrack.answer', 256, '-L -p tcp', { connectedOn: '127.0.0.1' }),
  conntrack('conntrack-v6.answer', 256, '-L -f ipv6 -p tcp', { connectedOn: '::1' }),
  conntrack('conntrack-zone.answer', 256, '-L', { setup: [IN_ZONE] }),
  conntrack('conntrack-update.request', 256, '-U -p tcp -m 5', { setup: [IN_ZONE] }),
  // The filter of the kernel is used where a status is asked for.
  conntrack('conntrack-list.request', 257, '-L -u ASSURED'),
  answer('error-gateway', 2, 'route add 10.1.0.0/16 via 192.0.2.1', []),
  answer('error-prefix', 2, 'route add 10.1.0.0/16 nhid 77', []),
];

function ask(name: string, type: number, args: string, setup: readonly string[] = []): Capture {
  return { name: `${name}.request`, direction: 'request', type, command: `ip -n $NS ${args}`, setup };
}

function answer(name: string, type: number, args: string, setup: readonly string[], nth = 0): Capture {
  return { name: `${name}.answer`, direction: 'answer', type, command: `ip -n $NS ${args}`, setup, nth };
}

function tc(name: string, type: number, args: string, setup: readonly string[], nth = 0): Capture {
  return { name, direction: directionOf(name), type, command: `tc -n $NS ${args}`, setup, nth };
}

function socket(name: string, type: number, connectedOn: string, flags: string): Capture {
  const command = `ip netns exec $NS ss ${flags} sport 50001`;
  return { name, direction: directionOf(name), type, connectedOn, command };
}

function conntrack(
  name: string,
  type: number,
  args: string,
  { setup = [], connectedOn }: Pick<Capture, 'setup' | 'connectedOn'> = {},
): Capture {
  const command = `ip netns exec $NS conntrack ${args}`;
  return {
    ...{ name, direction: directionOf(name), type, command, setup: [...TRACKED, ...setup] },
    ...(connectedOn !== undefined && { connectedOn }),
  };
}

function directionOf(name: string): Capture['direction'] {
  return name.endsWith('.request') ? 'request' : 'answer';
}

const NLMSG_HDRLEN = 16;
const folder = mkdtempSync(join(tmpdir(), 'tke-capture-'));
const objectFile = join(folder, 'verdict.o');
writeFileSync(objectFile, bpfObject('tc', 2));
try {
  const wanted = process.argv.slice(2);
  for (const capture of CAPTURES) {
    if (wanted.length === 0 || wanted.includes(capture.name)) make(capture);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function make(capture: Capture): void {
  const id = randomBytes(4).toString('hex');
  const names = { NS: `tke-capture-${id}`, PEER: `tke-capture-${id}-p` };
  const fill = (command: string) =>
    command.replaceAll('$NS', names.NS).replaceAll('$PEER', names.PEER).replaceAll('$OBJ', objectFile);
  for (const name of Object.values(names)) {
    run(`ip netns add ${name}`);
  }
  try {
    for (const command of capture.setup ?? []) {
      run(fill(command));
    }
    const connection = capture.connectedOn === undefined ? undefined : connect(names.NS, capture.connectedOn);
    const trace = join(folder, 'trace');
    const calls = 'trace=sendmsg,sendto,recvmsg,recvfrom';
    const args = ['-f', '-o', trace, '-s', '65536', '-e', calls, '-e', 'write=all', '-e', 'read=all'];
    spawnSync('strace', [...args, ...fill(capture.command).split(' ')], { encoding: 'utf8' });
    connection?.kill();
    const found = messagesOf(readFileSync(trace, 'utf8'), capture.direction).filter(
      (candidate) => candidate.readUInt16LE(4) === capture.type,
    );
    // iproute2 begins with an empty RTM_NEWLINK, to learn whether the kernel knows it.
    const message = capture.direction === 'request' ? found.at(-1) : found[capture.nth ?? 0];
    if (message === undefined) {
      throw new Error(`${capture.name}: no message of type ${capture.type} in: ${capture.command}`);
    }
    write(capture, message);
  } finally {
    for (const name of Object.values(names)) {
      spawnSync('ip', ['netns', 'del', name]);
    }
  }
}

/** Makes a connection in a namespace; it stands when this returns, and ends with the process. */
function connect(namespace: string, address: string): ChildProcess {
  run(`ip -n ${namespace} link set lo up`);
  const ready = join(folder, `ready-${randomBytes(4).toString('hex')}`);
  const code = `const net = require('node:net');
    net.createServer(() => require('node:fs').writeFileSync(process.argv[2], '')).listen(61677, process.argv[1], () =>
      net.connect({ host: process.argv[1], port: 61677, localPort: 50001 }));`;
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, '--eval', code, address, ready]);
  for (let attempt = 0; attempt < 100 && !existsSync(ready); attempt++) run('sleep 0.1');
  return child;
}

/** Reads the hex dumps that strace appends to a call, and cuts them into messages. */
function messagesOf(trace: string, direction: Capture['direction']): readonly Buffer[] {
  const wanted = direction === 'request' ? /^\d+ +send(msg|to)\(/ : /^\d+ +recv(msg|from)\(/;
  const datagrams: number[][] = [];
  let bytes: number[] | undefined;
  for (const line of trace.split('\n')) {
    const dump = /^ \| [0-9a-f]+ {2}((?:[0-9a-f]{2} {1,2})+)/.exec(line);
    if (/^\d+ /.test(line)) {
      // A PEEK with MSG_TRUNC shows the same bytes as the read that follows.
      bytes = wanted.test(line) && !line.includes('MSG_PEEK') ? [] : undefined;
      if (bytes !== undefined) {
        datagrams.push(bytes);
      }
    } else if (dump?.[1] !== undefined) {
      bytes?.push(
        ...dump[1]
          .trim()
          .split(/ +/)
          .map((hex) => Number.parseInt(hex, 16)),
      );
    }
  }
  return datagrams.flatMap((datagram) => split(Buffer.from(datagram)));
}

function split(datagram: Buffer): readonly Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at + NLMSG_HDRLEN <= datagram.length; ) {
    const length = datagram.readUInt32LE(at);
    if (length < NLMSG_HDRLEN || at + length > datagram.length) {
      break;
    }
    messages.push(datagram.subarray(at, at + length));
    at += (length + 3) & ~3;
  }
  return messages;
}

function write(capture: Capture, message: Buffer): void {
  const kernel = release().split('.').slice(0, 2).join('.');
  const setup = (capture.setup ?? []).join('; ') || 'none';
  const on = capture.connectedOn === undefined ? '' : `, connection on ${capture.connectedOn}`;
  const header = `# kernel ${kernel} | setup: ${setup}${on} | observed: ${capture.command} | how: strace, ${capture.direction}`;
  const lines = message.toString('hex').match(/.{1,64}/g) ?? [];
  writeFileSync(join('test', 'capture', `${capture.name}.hex`), `${header}\n${lines.join('\n')}\n`);
  console.log(`${capture.name}: ${message.length} bytes`);
}

function run(command: string): void {
  const [program = '', ...args] = command.split(' ');
  const result = spawnSync(program, args, { encoding: 'utf8' });
  if (result.status !== 0) {
    throw new Error(`${command}: ${result.stderr}`);
  }
}
