import { setTimeout as sleep } from 'node:timers/promises';
import { flowtableReplaceCommands } from '../../dataplane/fast-path/flowtable.ts';
import { udpFrame } from '../support/forged-frame.ts';
import { PacketSocket } from '../support/packet-socket.ts';
import { UdpSocket } from '../support/udp-socket.ts';
import { ADDRESS, ASSURED_MS, type GuestWorld, isOffloaded, UdpFlow, WAIT_MS } from './guest-world.ts';
import { report } from './report.ts';

const PORT = 7_000;

/** A UDP flow to a host behind the Pod's ENI: learned, not to be forged, followed until the table is replaced. Returns it. */
export async function followScene(world: GuestWorld): Promise<UdpFlow> {
  const { node, other, plan } = world;
  const { far, run, kernel } = node;
  const flow = new UdpFlow(world, {
    client: { ip: ADDRESS.pod, port: 4_000 },
    server: { ip: ADDRESS.far, port: PORT },
  });
  const isFollowed = () => isOffloaded(world, PORT);
  report('new', { exchange: flow.exchange(), isOffloaded: isFollowed() });
  await sleep(ASSURED_MS);
  report('assured', { exchange: [...flow.exchange(), ...flow.exchange()], isOffloaded: isFollowed() });

  // A frame with the addresses and ports of the flow, from the link of another Pod.
  const [link] = other.ip.json('link', 'show', 'eth0');
  using wire = new PacketSocket(other.netns, Number(link?.['ifindex']));
  const macs = { dstMac: other.network.hostVeth.mac, srcMac: other.network.podVeth.mac };
  wire.send(udpFrame({ ...macs, src: ADDRESS.pod, dst: ADDRESS.far, sport: 4_000, dport: PORT, payload: 'forged' }));
  const own = udpFrame({ ...macs, src: ADDRESS.other, dst: ADDRESS.far, sport: 4_001, dport: 7_001, payload: 'own' });
  using unforged = new UdpSocket(far.netns, { ip: ADDRESS.far, port: 7_001 }, WAIT_MS);
  wire.send(own);
  report('forged', { forged: flow.server.receive(), own: unforged.receive() });

  // A rule of others that drops the flow.
  run('nft', 'add table inet others; add chain inet others f { type filter hook forward priority 0; }');
  run('nft', `add rule inet others f ip saddr ${ADDRESS.pod} udp dport ${PORT} drop`);
  report('denied', { exchange: flow.exchange() });
  const planned = plan().flowtable;
  if (planned === undefined) throw new Error('a flowtable is planned');
  const names = planned.devices.map(({ ifname }) => ifname);
  await kernel.nft.load(flowtableReplaceCommands(planned.text, names));
  report('ended', { exchange: flow.exchange() });
  run('nft', 'delete table inet others');
  report('allowed', { exchange: [...flow.exchange(), ...flow.exchange()], isOffloaded: isFollowed() });
  return flow;
}
