import test, { type ExecutionContext } from 'ava';
import { filterAttacher, openNewLinks } from '../../../agent/fast-path/attach-new-links.ts';
import type { Lease, LeaseKey } from '../../../agent/journal/lease.ts';
import { openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { openFilterReader } from '../../../dataplane/fast-path/observe-filters.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { leaseOf } from '../../inspection/judge/sight-fixture.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';

const KEY = 'c/eth0';
/** Shorter than the wait for plugins after ours, and longer. */
const EARLY_MS = 4_900;
const LATE_MS = 5_100;

/** One link of one Pod in a namespace of its own, with real programs, on the virtual clock. */
class Scene implements Disposable {
  readonly host = new TestNetns();
  readonly flows = openFlowPrograms();
  readonly clock = new VirtualClock();
  readonly ifindex = this.host.addVethPair();
  readonly leases = new Map<LeaseKey, Lease>([
    [KEY, leaseOf(5, 10, { hostVeth: { name: 'v0', mac: '02:00:00:00:00:01', ifindex: this.ifindex } })],
  ]);
  readonly newLinks = new Set<LeaseKey>();
  readonly passes: string[] = [];
  isWanted = true;
  readonly queue = openNewLinks({
    background: runInBackground,
    clock: this.clock,
    state: { leases: this.leases, newLinks: this.newLinks },
    isWanted: () => this.isWanted,
    attacher: filterAttacher({
      log: silentLogger,
      kernel: { rtnetlink: this.host.rtnl, flows: this.flows },
      state: { kickPass: (cause) => this.passes.push(cause) },
    }),
  });

  attached(): readonly string[] {
    const reader = openFilterReader({ rtnetlink: this.host.rtnl, flows: this.flows });
    return reader.read(new Map([[this.ifindex, 'v0']])).ours.map(({ direction, program }) => `${direction} ${program}`);
  }

  [Symbol.dispose](): void {
    this.queue.close();
    this.flows.close();
    this.host[Symbol.dispose]();
  }
}

const NONE: readonly string[] = [];

test('openNewLinks: attaches the programs when the plugins after ours are done', async (t) => {
  using scene = new Scene();
  scene.queue.add(KEY);
  t.true(scene.newLinks.has(KEY), 'no pass attaches them before');
  await scene.clock.advance(EARLY_MS);
  t.deepEqual(scene.attached(), NONE);
  await scene.clock.advance(LATE_MS - EARLY_MS);
  t.deepEqual(scene.attached(), ['ingress fast', 'egress learn']);
  t.false(scene.newLinks.has(KEY));
  t.deepEqual(scene.passes, NONE);
  scene.queue.add(KEY);
  await scene.clock.advance(LATE_MS);
  t.is(scene.passes.length, 1, 'where filters are, a pass decides');
});

const nothing = async (t: ExecutionContext, change: (scene: Scene) => void, passes: number): Promise<void> => {
  using scene = new Scene();
  scene.queue.add(KEY);
  change(scene);
  await scene.clock.advance(LATE_MS);
  t.false(scene.newLinks.has(KEY));
  t.deepEqual(scene.attached(), NONE);
  t.is(scene.passes.length, passes);
};

test('openNewLinks: attaches nothing when the Pod went meanwhile', nothing, ({ leases }) => leases.delete(KEY), 0);
test(
  'openNewLinks: attaches nothing when the fast path was switched off meanwhile',
  nothing,
  (scene) => {
    scene.isWanted = false;
  },
  0,
);
test(
  'openNewLinks: leaves a link that is gone without a DEL to a pass',
  nothing,
  ({ host }) => host.ip('link del v0'),
  1,
);

test('openNewLinks: does nothing while no filters are planned, or after its end', async (t) => {
  using scene = new Scene();
  scene.isWanted = false;
  scene.queue.add(KEY);
  scene.isWanted = true;
  scene.queue.close();
  scene.queue.add(KEY);
  await scene.clock.advance(LATE_MS);
  t.is(scene.newLinks.size, 0);
  t.deepEqual(scene.attached(), NONE);
});
