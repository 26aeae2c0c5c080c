import { spawnSync } from 'node:child_process';
import test from 'ava';
import { openFlowEpochs } from '../../../agent/fast-path/flow-epochs.ts';
import { openOwnWrites } from '../../../agent/repair/own-writes.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { type Monitor, type MonitorEvent, openMonitorIn } from '../../../netlink/monitor.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';

/** Longer than a notification needs on a busy machine. */
const MAX_WAIT_MS = 20_000;

/** Reads so many events. The monitor is closed when they do not come in time. */
async function read(monitor: Monitor, count: number): Promise<readonly MonitorEvent[]> {
  const timer = setTimeout(() => monitor.close(), MAX_WAIT_MS);
  const events: MonitorEvent[] = [];
  for await (const event of monitor) {
    events.push(event);
    if (events.length === count) break;
  }
  clearTimeout(timer);
  return events;
}

test('openOwnWrites: tells the rules of our socket from those of another process', async (t) => {
  using host = new TestNetns();
  using monitor = openMonitorIn(host.netns, { groups: ['ipv4-rule'] });
  using rtnetlink = openRtnetlinkIn(host.netns);
  const own = openOwnWrites(rtnetlink);
  rtnetlink.rule.add({ family: AF_INET, priority: 512, table: 3999 });
  host.ip('rule add pref 513 lookup 3999');
  rtnetlink.rule.delete({ family: AF_INET, priority: 512, table: 3999 });
  host.ip('rule del pref 513');
  t.deepEqual((await read(monitor, 4)).map(own.isOwn), [true, false, true, false]);
});

test('openOwnWrites: tells the nft that we run from that of others', async (t) => {
  using host = new TestNetns();
  using monitor = openMonitorIn(host.netns, { groups: ['nftables'] });
  const own = openOwnWrites({ portid: 1 });
  const nft = openNft({ netnsPath: host.netns.path, loading: own.noteProcess });
  await nft.load('add table inet tke_eni\n');
  spawnSync('ip', ['netns', 'exec', host.name, 'nft', 'flush', 'ruleset'], { timeout: MAX_WAIT_MS });
  await nft.load('add table inet tke_eni\n');
  t.deepEqual((await read(monitor, 3)).map(own.isOwn), [true, false, true]);
});

test('openFlowEpochs: the nft that ends the flows of a flowtable is no reason to end them again', async (t) => {
  using host = new TestNetns();
  using monitor = openMonitorIn(host.netns, { groups: ['nftables'] });
  const own = openOwnWrites({ portid: 1 });
  const nft = openNft({ netnsPath: host.netns.path, loading: own.noteProcess });
  const clock = new VirtualClock();
  let ends = 0;
  const epochs = openFlowEpochs({ background: runInBackground, clock }, 'flowtable', () => {
    ends++;
    return nft.load('table inet tke_eni_flows\ndelete table inet tke_eni_flows\nadd table inet tke_eni_flows\n');
  });
  const timer = setTimeout(() => monitor.close(), MAX_WAIT_MS);
  spawnSync('ip', ['netns', 'exec', host.name, 'nft', 'add', 'table', 'inet', 'other'], { timeout: MAX_WAIT_MS });
  for await (const event of monitor) {
    if (own.isOwn(event)) break;
    epochs.note(event);
  }
  clearTimeout(timer);
  await clock.advance(10_000);
  t.is(ends, 1);
  epochs.close();
});
