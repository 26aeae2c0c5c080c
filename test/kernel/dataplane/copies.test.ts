import test from 'ava';
import { planNode } from '../../../dataplane/plan-node.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { UdpSocket } from '../../support/udp-socket.ts';
import { podOf, withTestNode } from './test-node.ts';

// Administrators copy packets for mirrors and intrusion detection. A copy passes the node's output with the mark and the
// source of the packet itself, as a packet of IPVS does, which is routed twice (ADR 0101).

/** Behind the ENI, in the VPC. */
const SERVER = '10.0.77.7';
const SENT = 10;

/** How a packet is copied to a Pod, by its address, in the language of nft(8) and of iptables. */
const COPIES = {
  'of nftables': (to: string) => [
    'nft',
    `table ip copies {
      chain post { type filter hook postrouting priority 0; ip daddr ${SERVER} dup to ${to}; }
    }`,
  ],
  'before routing, of nftables': (to: string) => [
    'nft',
    `table ip copies {
      chain pre { type filter hook prerouting priority 0; ip daddr ${SERVER} dup to ${to}; }
    }`,
  ],
  'of the target TEE': (to: string) => [
    ...['iptables', '-w', '-t', 'mangle', '-A', 'POSTROUTING', '-d', SERVER],
    ...['-j', 'TEE', '--gateway', to],
  ],
} as const;

/** Counts what leaves by the ENI, and what goes to the Pod that gets the copies, behind all other chains. */
const COUNTERS = `table inet counts {
  counter by_eni { }
  counter to_pod { }
  chain behind {
    type filter hook postrouting priority 500; policy accept;
    ip daddr ${SERVER} oifname "eth5" counter name by_eni
    ip daddr ${SERVER} oifgroup 4025 counter name to_pod
  }
}`;

for (const ruleMode of ['compact', 'per-pod'] as const)
  for (const [how, copies] of Object.entries(COPIES))
    test(`nftTable: a copy goes to its Pod once, and by no ENI; ${ruleMode} mode, ${how}`, async (t) => {
      await withTestNode(async (node) => {
        const [eth5] = node.enis;
        if (eth5 === undefined) return t.fail();
        const network = { ...node.network, ruleMode };
        const spaces = ['10.0.5.10', '10.0.5.11'].map((ip) => {
          const pod = podOf(eth5, [ip]);
          const space = node.createPodNetns();
          const { hostName, hostIfindex } = wirePod(node.kernel, space.netns, {
            node: network,
            pod,
            fallbackName: pod.hostVeth.name,
          });
          return { ip, space, pod: { ...pod, hostVeth: { ...pod.hostVeth, name: hostName, ifindex: hostIfindex } } };
        });
        const [sender, copied] = spaces;
        if (sender === undefined || copied === undefined) return t.fail();
        await node.reach(
          planNode(
            network,
            node.enis,
            spaces.map(({ pod }) => pod),
          ),
        );
        node.run('nft', COUNTERS);
        const [command = '', ...args] = copies(copied.ip);
        node.run(command, ...args);
        using client = new UdpSocket(sender.space.netns, { ip: sender.ip, port: 0 });
        client.connect({ ip: SERVER, port: 7_000 });
        for (let n = 0; n < SENT; n++) client.send(Buffer.from('once'));
        const counted = (name: string): number => {
          const { nftables } = JSON.parse(node.run('nft', '-j', 'list', 'counter', 'inet', 'counts', name));
          return nftables.find((one: object) => 'counter' in one).counter.packets;
        };
        t.deepEqual({ byEni: counted('by_eni'), toPod: counted('to_pod') }, { byEni: SENT, toPod: SENT });
      });
    });
