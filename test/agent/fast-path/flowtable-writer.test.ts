import test from 'ava';
import { openNewLinks } from '../../../agent/fast-path/attach-new-links.ts';
import { openFlowtableWriter } from '../../../agent/fast-path/flowtable-writer.ts';
import type { Lease, LeaseKey } from '../../../agent/journal/lease.ts';
import type { FlowtableState } from '../../../dataplane/desired.ts';
import { flowtableReplaceCommands } from '../../../dataplane/fast-path/flowtable.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { leaseOf } from '../../inspection/judge/sight-fixture.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const link = (ifindex: number, ifname: string) => ({ ifindex, ifname, mtu: 1500, isUp: true });

/** A flowtable that is planned with two links, and a kernel that takes what it is told, or refuses all. */
class Scene {
  links = [link(2, 'eth0'), link(5, 'eth5'), link(10, 'eni10'), link(11, 'eni11')];
  flowtable: FlowtableState | undefined = {
    text: 'planned\n',
    devices: [
      { ifindex: 2, ifname: 'eth0' },
      { ifindex: 5, ifname: 'eth5' },
    ],
  };
  readonly done: Operation[] = [];
  readonly passes: string[] = [];
  isBroken = false;
  #isExclusive = false;
  readonly writer = openFlowtableWriter({
    log: silentLogger,
    kernel: {
      links: () => this.links,
      apply: async (operations) => {
        if (!this.#isExclusive) throw new Error('written while a pass may run');
        if (this.isBroken) return operations.map((operation) => ({ operation, error: new Error('nft is busy') }));
        this.done.push(...operations);
        return [];
      },
    },
    planned: () => (this.flowtable === undefined ? undefined : { flowtable: this.flowtable }),
    state: {
      runExclusive: async (work) => {
        this.#isExclusive = true;
        try {
          return await work();
        } finally {
          this.#isExclusive = false;
        }
      },
      kickPass: (cause) => this.passes.push(cause),
    },
  });
}

test('endFlows: replaces the table by what is planned, without links that are gone', async (t) => {
  const scene = new Scene();
  await scene.writer.endFlows();
  scene.links = scene.links.filter(({ ifname }) => ifname !== 'eth5');
  await scene.writer.endFlows();
  t.deepEqual(scene.done, [
    { kind: 'replace-flowtable', commands: flowtableReplaceCommands('planned\n', ['eth0', 'eth5']) },
    { kind: 'replace-flowtable', commands: flowtableReplaceCommands('planned\n', ['eth0']) },
  ]);
});

test('endFlows: does nothing where none is planned, and fails with what the kernel refuses', async (t) => {
  const scene = new Scene();
  scene.isBroken = true;
  await t.throwsAsync(scene.writer.endFlows(), { message: 'nft is busy' });
  scene.flowtable = undefined;
  await t.notThrowsAsync(scene.writer.endFlows());
  t.deepEqual(scene.done, []);
});

/** The queue of new links before the writer, on the virtual clock; Pod `n` has the link with index `n`. */
function queueOf(scene: Scene, pods: readonly number[]) {
  const clock = new VirtualClock();
  const key = (pod: number): LeaseKey => `c${pod}/eth0`;
  const veth = (pod: number) => ({ name: `eni${pod}`, mac: '02:00:00:00:00:01', ifindex: pod });
  const leases = new Map<LeaseKey, Lease>(
    pods.map((pod) => [key(pod), leaseOf(5, pod, { hostVeth: veth(pod) })] as const),
  );
  const newLinks = new Set<LeaseKey>();
  const { attacher } = scene.writer;
  const queue = openNewLinks({
    background: runInBackground,
    clock,
    state: { leases, newLinks },
    isWanted: () => true,
    attacher,
  });
  return {
    clock,
    leases,
    newLinks,
    add: (pod: number) => queue.add(key(pod)),
    drop: (pod: number) => leases.delete(key(pod)),
  };
}

test('new links: those that are due together are added by one operation', async (t) => {
  const scene = new Scene();
  const { clock, newLinks, add } = queueOf(scene, [10, 11]);
  add(10);
  await clock.advance(200);
  add(11);
  t.is(newLinks.size, 2);
  await clock.advance(5_000);
  t.deepEqual(scene.done, [], 'plugins after ours may need their time');
  await clock.advance(100);
  t.deepEqual(scene.done, [{ kind: 'add-flow-devices', devices: ['eni10', 'eni11'] }]);
  t.is(newLinks.size, 0);
});

test('new links: one that is gone is left out, and what is refused is left to a pass', async (t) => {
  const scene = new Scene();
  const { clock, add, drop } = queueOf(scene, [10, 11, 12]);
  for (const pod of [10, 11, 12]) add(pod);
  drop(10);
  await clock.advance(6_000);
  t.deepEqual(scene.done, [{ kind: 'add-flow-devices', devices: ['eni11'] }], 'Pod 12 has no link');
  scene.isBroken = true;
  add(11);
  await clock.advance(6_000);
  t.deepEqual(scene.passes, ['devices of the flowtable']);
});
