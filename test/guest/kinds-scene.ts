import { setTimeout as sleep } from 'node:timers/promises';
import { TcpPair } from '../support/tcp-socket.ts';
import { ADDRESS, ASSURED_MS, type GuestWorld, isOffloaded, trackedLine, UdpFlow, WAIT_MS } from './guest-world.ts';
import { report } from './report.ts';

/** Bytes that a TCP connection carries each way: more than a segment. */
const TCP_BYTES = 20_000;
const SERVICE_PORTS = { udp: 8_053, tcp: 8_080 } as const;

/**
 * TCP and UDP of both families, to another Pod, by a Service and to the outside with the node's address: each is followed in both directions, past
 * a rule that drops it. FIN and RST end a flow.
 */
export async function kindsScene(world: GuestWorld): Promise<void> {
  const { run } = world.node;
  const { ruleMode } = world.network;
  // As kube-proxy in nftables mode translates the address of a Service.
  run('nft', 'add table ip services; add chain ip services p { type nat hook prerouting priority dstnat; }');
  run(
    'nft',
    `add rule ip services p ip daddr ${ADDRESS.service} udp dport ${SERVICE_PORTS.udp} dnat to ${ADDRESS.far}:7053`,
  );
  run(
    'nft',
    `add rule ip services p ip daddr ${ADDRESS.service} tcp dport ${SERVICE_PORTS.tcp} dnat to ${ADDRESS.far}:7080`,
  );
  const flows = udpFlows(world);
  for (const [, { flow }] of flows) flow.exchange();
  const connections = tcpConnections(world);
  await sleep(ASSURED_MS);
  const exchangeAll = () => ({
    ...Object.fromEntries(flows.map(([name, { flow }]) => [name, flow.exchange()])),
    ...Object.fromEntries(connections.map(([name, { pair }]) => [name, pair.exchange(TCP_BYTES)])),
  });
  exchangeAll();
  const ports = [...flows, ...connections].map(([name, { port }]) => [name, port] as const);
  const followed = () => Object.fromEntries(ports.map(([name, port]) => [name, isOffloaded(world, port)]));
  report(`kinds-${ruleMode}`, { exchange: exchangeAll(), isOffloaded: followed() });

  run('nft', 'add table inet others; add chain inet others f { type filter hook forward priority 0; }');
  run('nft', `add rule inet others f meta l4proto { tcp, udp } drop`);
  report(`denied-${ruleMode}`, { exchange: exchangeAll(), isOffloaded: followed() });
  run('nft', 'delete table inet others');

  for (const [name, { pair, port }] of connections) {
    pair.end(name === 'tcp-reset' ? 'rst' : 'fin');
    const line = trackedLine(world, port);
    report(`end-${name}-${ruleMode}`, {
      isOffloaded: line.includes('[OFFLOAD]'),
      leftS: Number(/ tcp +6 (\d+)/.exec(line)?.[1]),
    });
  }
  run('nft', 'delete table ip services');
}

/** Flows and the ports that they were opened to. */
function udpFlows(world: GuestWorld) {
  const client = { ip: ADDRESS.pod, port: 4_100 };
  const at = (port: number) => ({ ...client, port });
  return Object.entries({
    'udp-v6': {
      port: 7_101,
      flow: new UdpFlow(world, {
        client: { ip: ADDRESS.pod6, port: 4_101 },
        server: { ip: ADDRESS.far6, port: 7_101 },
      }),
    },
    'udp-service': {
      port: SERVICE_PORTS.udp,
      flow: new UdpFlow(world, {
        client: at(4_102),
        server: { ip: ADDRESS.far, port: 7_053 },
        by: { ip: ADDRESS.service, port: SERVICE_PORTS.udp },
      }),
    },
    'udp-pods': {
      port: 7_104,
      flow: new UdpFlow(world, {
        client: at(4_104),
        server: { ip: ADDRESS.other, port: 7_104 },
        to: world.other.netns,
      }),
    },
    'udp-masqueraded': {
      port: 7_103,
      flow: new UdpFlow(world, {
        client: at(4_103),
        server: { ip: ADDRESS.outside, port: 7_103 },
        seen: { ip: ADDRESS.node, port: 4_103 },
      }),
    },
  });
}

function tcpConnections({ node, pod }: GuestWorld) {
  const ends = { from: pod.netns, to: node.far.netns };
  const client = (port: number) => ({ ip: ADDRESS.pod, port });
  const pair = (way: Omit<ConstructorParameters<typeof TcpPair>[0], 'from' | 'to'>) =>
    new TcpPair({ ...ends, ...way }, WAIT_MS);
  return Object.entries({
    tcp: { port: 7_201, pair: pair({ client: client(4_201), server: { ip: ADDRESS.far, port: 7_201 } }) },
    'tcp-reset': { port: 7_202, pair: pair({ client: client(4_202), server: { ip: ADDRESS.far, port: 7_202 } }) },
    'tcp-v6': {
      port: 7_203,
      pair: pair({ client: { ip: ADDRESS.pod6, port: 4_203 }, server: { ip: ADDRESS.far6, port: 7_203 } }),
    },
    'tcp-service': {
      port: SERVICE_PORTS.tcp,
      pair: pair({
        client: client(4_204),
        server: { ip: ADDRESS.far, port: 7_080 },
        by: { ip: ADDRESS.service, port: SERVICE_PORTS.tcp },
      }),
    },
    'tcp-masqueraded': {
      port: 7_205,
      pair: pair({ client: client(4_205), server: { ip: ADDRESS.outside, port: 7_205 } }),
    },
  });
}
