import { flowtableDeleteCommands, flowtableReplaceCommands } from '../../dataplane/fast-path/flowtable.ts';
import { tcpBeLiberal } from '../../sysctl/sysctl-key.ts';
import { TcpPair } from '../support/tcp-socket.ts';
import { ADDRESS, type GuestWorld, isOffloaded, WAIT_MS } from './guest-world.ts';
import { report } from './report.ts';

const PORTS = { plain: 7_401, service: 8_081 } as const;
/** So much passes each way unseen by connection tracking: far beyond the window that it knows. */
const [BYTES, TIMES] = [20_000, 150];

/**
 * TCP connections that a flowtable followed go on without it, where invalid packets are dropped and the setting is given back: the
 * kernel has connection tracking learn their sequence numbers again.
 */
export async function offScene(world: GuestWorld): Promise<void> {
  const { node, pod, plan } = world;
  const { run, kernel } = node;
  run('nft', 'add table ip services; add chain ip services p { type nat hook prerouting priority dstnat; }');
  run(
    'nft',
    `add rule ip services p ip daddr ${ADDRESS.service} tcp dport ${PORTS.service} dnat to ${ADDRESS.far}:7402`,
  );
  const ends = { from: pod.netns, to: node.far.netns };
  const client = (port: number) => ({ ip: ADDRESS.pod, port });
  const plain = { client: client(4_401), server: { ip: ADDRESS.far, port: PORTS.plain } };
  const service = {
    ...{ client: client(4_402), server: { ip: ADDRESS.far, port: 7_402 } },
    by: { ip: ADDRESS.service, port: PORTS.service },
  };
  const pairs = [plain, service].map((way) => new TcpPair({ ...ends, ...way }, WAIT_MS));
  const exchange = () => pairs.flatMap((pair) => pair.exchange(BYTES));
  for (let time = 0; time < TIMES; time++) exchange();
  const followed = Object.values(PORTS).map((port) => isOffloaded(world, port));
  run('nft', 'add table inet others; add chain inet others f { type filter hook forward priority 0; }');
  run('nft', 'add rule inet others f ct state invalid counter drop');
  await kernel.nft.load(flowtableDeleteCommands());
  kernel.sysctl.set(tcpBeLiberal(), '0');
  const beLiberal = kernel.sysctl.find(tcpBeLiberal());
  report('switched-off', { followed, beLiberal, exchange: [...exchange(), ...exchange()] });
  for (const pair of pairs) pair.end('fin');
  run('nft', 'delete table inet others; delete table ip services');
  kernel.sysctl.set(tcpBeLiberal(), '1');
  const planned = plan().flowtable;
  if (planned === undefined) throw new Error('a flowtable is planned');
  const names = planned.devices.map(({ ifname }) => ifname);
  await kernel.nft.load(flowtableReplaceCommands(planned.text, names));
}
