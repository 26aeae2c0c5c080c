import { setTimeout as sleep } from 'node:timers/promises';
import { PacketBatch } from '../../bench/forwarding/packet-batch.ts';
import { flowtableDeleteCommands, flowtableReplaceCommands } from '../../dataplane/fast-path/flowtable.ts';
import { recordOf } from '../../runtime/json.ts';
import { ADDRESS, ASSURED_MS, type GuestWorld, isOffloaded, UdpFlow } from './guest-world.ts';
import { report } from './report.ts';

const PORT = 7_301;
const ROUNDS = 3;
const ROUND_MS = 1_500;
const BATCH = 64;

/** Packets a second that arrive of one UDP flow, in turn with the flowtable and without. An emulated machine says little of a real one. */
export async function rateScene(world: GuestWorld): Promise<void> {
  const { node, plan } = world;
  const { nft } = node.kernel;
  const flow = new UdpFlow(world, {
    client: { ip: ADDRESS.pod, port: 4_301 },
    server: { ip: ADDRESS.far, port: PORT },
  });
  flow.exchange();
  await sleep(ASSURED_MS);
  using batch = new PacketBatch(Buffer.alloc(32, 0x55), BATCH);
  const planned = plan().flowtable;
  if (planned === undefined) throw new Error('a flowtable is planned');
  const names = planned.devices.map(({ ifname }) => ifname);
  const rates: { readonly isOffloaded: boolean; readonly perSecond: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const commands of [flowtableReplaceCommands(planned.text, names), flowtableDeleteCommands()]) {
      await nft.load(commands);
      batch.send(flow.client.fd);
      const isFollowed = isOffloaded(world, PORT);
      rates.push({ isOffloaded: isFollowed, perSecond: measure(world, flow, batch) });
    }
  }
  await nft.load(flowtableReplaceCommands(planned.text, names));
  report('rates', rates);
}

function measure(world: GuestWorld, { client }: UdpFlow, batch: PacketBatch): number {
  const before = arrived(world);
  const startedMs = performance.now();
  while (performance.now() - startedMs < ROUND_MS) batch.send(client.fd);
  const seconds = (performance.now() - startedMs) / 1_000;
  return Math.round((arrived(world) - before) / seconds);
}

/** Packets that the host's link has counted. */
function arrived({ node }: GuestWorld): number {
  const [link] = node.far.ip.json('-s', 'link', 'show', 'far5');
  return recordOf(recordOf(link?.['stats64'])['rx'])['packets'] as number;
}
