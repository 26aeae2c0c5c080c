import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { tryFlowtable } from '../../agent/fast-path/try-flowtable.ts';
import { openOwnWrites } from '../../agent/repair/own-writes.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { flowtableReplaceCommands } from '../../dataplane/fast-path/flowtable.ts';
import type { EniPodNetwork } from '../../dataplane/network.ts';
import { openNft } from '../../dataplane/nft.ts';
import { observeHost } from '../../dataplane/observe.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import { wirePod } from '../../dataplane/wire-pod.ts';
import { type MonitorEvent, openMonitorIn } from '../../netlink/monitor.ts';
import { withNetns } from '../../netlink/netns.ts';
import { podOf, type TestNode, withTestNode } from '../kernel/dataplane/test-node.ts';
import { udpFrame } from '../support/forged-frame.ts';
import { PacketSocket } from '../support/packet-socket.ts';
import { UdpSocket } from '../support/udp-socket.ts';
import { report } from './report.ts';

// Runs in a guest whose kernel has flowtables: what a Pod's UDP flow to a host behind its ENI does in ours.

const [POD_IP, OTHER_IP, FAR_IP] = ['10.0.5.20', '10.0.5.21', '10.0.5.1'];
/** A UDP flow is assured when it lasts for two seconds. */
const ASSURED_MS = 2_500;
/** With them the flowtable has more devices than a message takes, and none too many. */
const MANY = 255;
/** Longest wait for a packet; an emulated machine is slow. */
const WAIT_MS = 900;

await withTestNode(async (node) => {
  const { kernel, enis, ip, far, network, run, netns } = node;
  report('try', (await tryFlowtable(kernel)) ?? '');
  const [eth5] = enis;
  if (eth5 === undefined) throw new Error('a test node has ENIs');
  const on = { ...network, fastPath: 'flowtable' as const };
  await node.reach(planNode(on, enis, []));
  far.ip('address', 'add', `${FAR_IP}/24`, 'dev', 'far5');
  // As the VPC does: packets to addresses of an ENI go to its MAC.
  for (const address of [POD_IP, OTHER_IP])
    far.ip('neigh', 'add', address, 'lladdr', eth5.mac, 'dev', 'far5', 'nud', 'permanent');
  const pods = [POD_IP, OTHER_IP].map((address) => wired(node, podOf(eth5, [address])));
  const plan = (networks: readonly EniPodNetwork[] = pods.map((pod) => pod.network)) => planNode(on, enis, networks);
  report('first', summary(await node.reach(plan())));
  report('second', diffHost(plan(), await observeHost(kernel, plan())).operations);

  const [pod, other] = pods;
  if (pod === undefined || other === undefined) throw new Error('two Pods were wired');
  const client = new UdpSocket(pod.netns, { ip: POD_IP, port: 4_000 }, WAIT_MS);
  const server = new UdpSocket(far.netns, { ip: FAR_IP, port: 7_000 }, WAIT_MS);
  client.connect(server.local);
  server.connect(client.local);
  const exchange = (): readonly boolean[] => {
    client.send(Buffer.from('ask'));
    const asked = server.receive();
    server.send(Buffer.from('answer'));
    return [asked, client.receive()];
  };
  const isOffloaded = (): boolean =>
    withNetns(netns, () => readFileSync(`/proc/${process.pid}/task/${process.pid}/net/nf_conntrack`, 'utf8'))
      .split('\n')
      .some((line) => line.includes('dport=7000') && line.includes('[OFFLOAD]'));
  report('new', { exchange: exchange(), isOffloaded: isOffloaded() });
  await sleep(ASSURED_MS);
  report('assured', { exchange: [...exchange(), ...exchange()], isOffloaded: isOffloaded() });

  // A frame with the addresses and ports of the flow, from the link of another Pod.
  const [link] = other.ip.json('link', 'show', 'eth0');
  using wire = new PacketSocket(other.netns, Number(link?.['ifindex']));
  const macs = { dstMac: other.network.hostVeth.mac, srcMac: other.network.podVeth.mac };
  wire.send(udpFrame({ ...macs, src: POD_IP, dst: FAR_IP, sport: 4_000, dport: 7_000, payload: 'forged' }));
  const own = udpFrame({ ...macs, src: OTHER_IP, dst: FAR_IP, sport: 4_001, dport: 7_001, payload: 'own' });
  const unforged = new UdpSocket(far.netns, { ip: FAR_IP, port: 7_001 }, WAIT_MS);
  wire.send(own);
  report('forged', { forged: server.receive(), own: unforged.receive() });

  // A rule of others that drops the flow.
  run('nft', 'add table inet others; add chain inet others f { type filter hook forward priority 0; }');
  run('nft', `add rule inet others f ip saddr ${POD_IP} udp dport 7000 drop`);
  report('denied', { exchange: exchange() });
  const found = plan().flowtable;
  if (found === undefined) throw new Error('a flowtable is planned');
  const events: MonitorEvent[] = [];
  const monitor = openMonitorIn(netns, { groups: ['nftables'] });
  const writes = openOwnWrites({ portid: 1 });
  const ours = openNft({ netnsPath: netns.path, loading: writes.noteProcess });
  const names = found.devices.map(({ ifname }) => ifname);
  await ours.load(flowtableReplaceCommands(found.text, names));
  report('ended', { exchange: exchange() });
  run('nft', 'delete table inet others');
  report('allowed', { exchange: [...exchange(), ...exchange()], isOffloaded: isOffloaded() });

  // Many links: in messages that fit, and their notifications are ours.
  for (let at = 0; at < MANY; at++) {
    ip('link', 'add', `enilongname${String(at).padStart(4, '0')}`, 'type', 'dummy');
  }
  const many = ip.json('link', 'show', 'type', 'dummy').map((each) => String(each['ifname']));
  await ours.load(flowtableReplaceCommands(found.text, [...names, ...many]));
  const startedMs = performance.now();
  await ours.load(flowtableReplaceCommands(found.text, [...names, ...many]));
  const tookMs = Math.round(performance.now() - startedMs);
  const timer = setTimeout(() => monitor.close(), 2_000);
  for await (const event of monitor) events.push(event);
  clearTimeout(timer);
  report('many', {
    devices: (await observeHost(kernel, plan())).nft.flowtable?.devices.length,
    operations: diffHost(plan(), await observeHost(kernel, plan())).operations,
    foreign: events.filter((event) => event.kind !== 'overrun' && !writes.isOwn(event)).length,
    overruns: events.filter(({ kind }) => kind === 'overrun').length,
    tookMs,
  });

  // A link that is deleted ends its flows and leaves the flowtable.
  report('before', { exchange: [...exchange(), ...exchange()], isOffloaded: isOffloaded() });
  ip('link', 'del', pod.network.hostVeth.name);
  await sleep(1_500);
  const rest = plan([other.network]);
  const left = (await observeHost(kernel, rest)).nft.flowtable?.devices ?? [];
  report('deleted', { isOffloaded: isOffloaded(), isDevice: left.includes(pod.network.hostVeth.name) });
  report('missing', summary(await node.reach(plan())));

  const off = planNode(network, enis, [other.network]);
  report('off', summary(await node.reach(off)));
  report('left', execFileSync('ip', ['netns', 'exec', node.name, 'nft', 'list', 'tables'], { encoding: 'utf8' }));
});

/** First words of each operation. */
function summary(lines: readonly string[]): readonly string[] {
  return lines.map((line) => (line.includes('tke_eni_flows') ? 'flowtable' : (line.split(' ')[0] ?? '')));
}

function wired({ kernel, network, createPodNetns }: TestNode, pod: EniPodNetwork) {
  const space = createPodNetns();
  const wiring = { node: network, pod, fallbackName: `f${pod.hostVeth.name.slice(-8)}` };
  const { hostIfindex, hostName } = wirePod(kernel, space.netns, wiring);
  return { ...space, network: { ...pod, hostVeth: { ...pod.hostVeth, name: hostName, ifindex: hostIfindex } } };
}
