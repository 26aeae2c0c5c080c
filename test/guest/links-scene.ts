import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openOwnWrites } from '../../agent/repair/own-writes.ts';
import { diffHost } from '../../dataplane/diff.ts';
import { flowtableReplaceCommands } from '../../dataplane/fast-path/flowtable.ts';
import { openNft } from '../../dataplane/nft.ts';
import { observeHost } from '../../dataplane/observe.ts';
import { type MonitorEvent, openMonitorIn } from '../../netlink/monitor.ts';
import { type GuestWorld, isOffloaded, type UdpFlow } from './guest-world.ts';
import { report, summary } from './report.ts';

/** With them the flowtable has more devices than a message takes, and none too many. */
const MANY = 255;

/** Many links are one transaction that is known as ours; a link that is deleted ends its flows and leaves the flowtable. */
export async function linksScene(world: GuestWorld, flow: UdpFlow): Promise<void> {
  const { node, pod, other, plan } = world;
  const { ip, kernel } = node;
  await manyLinks(world);
  const isFollowed = () => isOffloaded(world, 7_000);
  report('before', { exchange: [...flow.exchange(), ...flow.exchange()], isOffloaded: isFollowed() });
  ip('link', 'del', pod.network.hostVeth.name);
  await sleep(1_500);
  const rest = plan([other]);
  const left = (await observeHost(kernel, rest)).nft.flowtable?.devices ?? [];
  report('deleted', { isOffloaded: isFollowed(), isDevice: left.includes(pod.network.hostVeth.name) });
  report('missing', summary(await node.reach(plan())));
}

async function manyLinks({ node, plan }: GuestWorld): Promise<void> {
  const { ip, kernel, netns, run } = node;
  const planned = plan().flowtable;
  if (planned === undefined) throw new Error('a flowtable is planned');
  const events: MonitorEvent[] = [];
  const monitor = openMonitorIn(netns, { groups: ['nftables'] });
  const writes = openOwnWrites({ portid: 1 });
  const ours = openNft({ netnsPath: netns.path, loading: writes.noteProcess });
  // The one change of others.
  run('nft', 'add table inet others');
  const batch = '/tmp/links';
  const line = (_: unknown, at: number) => `link add enilongname${String(at).padStart(4, '0')} type dummy\n`;
  writeFileSync(batch, Array.from({ length: MANY }, line).join(''));
  ip('-batch', batch);
  const many = ip.json('link', 'show', 'type', 'dummy').map((each) => String(each['ifname']));
  const names = planned.devices.map(({ ifname }) => ifname);
  await ours.load(flowtableReplaceCommands(planned.text, [...names, ...many]));
  const startedMs = performance.now();
  await ours.load(flowtableReplaceCommands(planned.text, [...names, ...many]));
  const tookMs = Math.round(performance.now() - startedMs);
  const timer = setTimeout(() => monitor.close(), 2_000);
  for await (const event of monitor) events.push(event);
  clearTimeout(timer);
  const observed = await observeHost(kernel, plan());
  report('many', {
    devices: observed.nft.flowtable?.devices.length,
    operations: diffHost(plan(), observed).operations,
    foreign: events.filter((event) => event.kind !== 'overrun' && !writes.isOwn(event)).length,
    overruns: events.filter(({ kind }) => kind === 'overrun').length,
    tookMs,
  });
}
