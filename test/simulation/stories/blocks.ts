import { POD_CIDRS_CONFIG_MAP } from '../../../crd/pod-cidr-record.ts';
import { CONFIG_MAPS } from '../../../kube/resource-types.ts';
import type { FaultAction } from '../../../sim/kube-api/faults.ts';
import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';
import type { Story } from '../story.ts';
import { between } from '../streams.ts';

/** Its nodes have no ENIs, and blocks of 256 addresses. */
function worldOf(clusterCidr: string, ...flags: readonly string[]) {
  return {
    config: { TKE_ENI_IPAMD_SUBNET_ID: '' },
    flags: [
      ...['--allocate-node-cidrs=true', `--cluster-cidr=${clusterCidr}`, '--node-cidr-mask-size=24'],
      ...['--gr-routes=none', '--default-network=tke-bridge', ...flags],
    ],
  } as const;
}

async function untilGiven(stage: Stage, machine: Machine, limitMs?: number): Promise<void> {
  await stage.until(`${machine.name} has a block`, () => stage.podCidrOf(machine) !== undefined, limitMs);
}

/** A node joins, and gets a block. */
async function joinWithBlock(stage: Stage): Promise<Machine> {
  const machine = await stage.join();
  await untilGiven(stage, machine);
  return machine;
}

/** Two blocks for three nodes; another one is that of a subnet. */
export const heldBlock: Story = {
  title: 'a block of a node that left is given when its hold is over',
  world: worldOf('10.2.0.0/24,192.168.0.0/23'),
  tell: async (stage) => {
    const [first] = [await joinWithBlock(stage), await joinWithBlock(stage)];
    stage.begin();
    const third = await stage.join();
    await stage.minutes(2);
    stage.expect('it is said once', stage.events('CIDRNotAvailable').length === 1);
    stage.expect('so is the subnet', stage.events('CIDROverlap').length === 1);
    await stage.leave(first);
    await stage.minutes(9);
    stage.expect('the block rests', stage.podCidrOf(third) === undefined);
    await untilGiven(stage, third, 120_000);
    stage.expect('no route was looked for', stage.sent('DescribeGlobalRoutes') === 0);
  },
};

/** The leader dies, and the next one is not told of the subnets for a while: one of them is within the networks of the blocks. */
export const subnetsUnknown: Story = {
  title: 'a new leader gives no block before it knows the subnets',
  world: worldOf('10.2.0.0/24,192.168.0.0/23'),
  tell: async (stage) => {
    await joinWithBlock(stage);
    const heal = stage.cloudFault({ fault: { kind: 'error', code: 'InternalError' }, actions: ['DescribeSubnets'] });
    stage.killLeader();
    const node = await stage.join();
    await stage.minutes(2);
    stage.expect('it has to wait', stage.podCidrOf(node) === undefined);
    heal();
    await untilGiven(stage, node);
  },
};

/** Nodes register again, also while nobody leads, and another machine gets the name of one. */
export const formerBlock: Story = {
  title: 'a node that registers again gets its block, and another machine of its name another',
  world: worldOf('192.168.0.0/20'),
  tell: async (stage) => {
    stage.begin();
    const [first, second] = [await joinWithBlock(stage), await joinWithBlock(stage)];
    const before = [first, second].map((one) => stage.podCidrOf(one));
    await stage.unregister(first);
    stage.killAll();
    await stage.unregister(second);
    const third = await stage.join();
    for (const one of [first, second]) await stage.register(one);
    for (const one of [first, second, third]) await untilGiven(stage, one);
    stage.expect('they have their blocks', [first, second].map((one) => stage.podCidrOf(one)).join() === before.join());
    await stage.unregister(first);
    await stage.register(first, { providerID: 'qcloud:///100003/ins-another0' });
    await untilGiven(stage, first);
    stage.expect('it is another', stage.podCidrOf(first) !== before[0]);
  },
};

/** kube-controller-manager gives blocks too, and is faster once. */
export const otherAllocator: Story = {
  title: 'no block is given any more when another allocator gives some',
  world: worldOf('192.168.0.0/20'),
  tell: async (stage) => {
    await joinWithBlock(stage);
    stage.begin();
    await stage.join({ podCIDR: '192.168.9.0/24' });
    await stage.minutes(1);
    const late = await stage.join();
    await stage.minutes(2);
    stage.expect('it has none', stage.podCidrOf(late) === undefined);
    stage.expect('it is said of the Node and of the settings', stage.events('CIDRAllocatorConflict').length === 2);
    // Processes that start again have seen nothing of it.
    stage.killAll();
    await untilGiven(stage, late);
    const next = await stage.join();
    stage.expect('the other is faster', await stage.patchNode(next, { spec: { podCIDR: '192.168.10.0/24' } }));
    const last = await stage.join();
    await stage.minutes(2);
    stage.expect('the last has none', stage.podCidrOf(last) === undefined);
    stage.killAll();
    await untilGiven(stage, last);
  },
};

/** The network has one block. A person gives one to the Node that waits; then the first Node leaves. */
export const givenByHand: Story = {
  title: 'blocks are given on after a person gave one to a Node that had waited long',
  world: worldOf('192.168.0.0/24'),
  tell: async (stage) => {
    const first = await joinWithBlock(stage);
    stage.begin();
    const second = await stage.join();
    await stage.minutes(2);
    stage.expect('it is accepted', await stage.patchNode(second, { spec: { podCIDR: '192.168.9.0/24' } }));
    await stage.minutes(1);
    await stage.leave(first);
    const third = await stage.join();
    await stage.until('it has the block, once it is held no more', () => !!stage.podCidrOf(third), 14_400_000);
  },
};

/** People break the record and delete it; the API server refuses blocks for a while. */
export const brokenRecord: Story = {
  title: 'a record that is lost is written again, and a block that is refused goes back',
  world: worldOf('192.168.0.0/20'),
  tell: async (stage) => {
    await joinWithBlock(stage);
    stage.begin();
    const record = { namespace: 'kube-system', name: POD_CIDRS_CONFIG_MAP };
    const broken = { kind: 'merge', body: { data: { taken: 'all', owners: '[' } } } as const;
    await stage.people(stage.world.admin.patch(CONFIG_MAPS, record, broken));
    await joinWithBlock(stage);
    await stage.people(stage.world.admin.delete(CONFIG_MAPS, record));
    await joinWithBlock(stage);
    const heal = stage.apiFault({ verbs: ['patch'], resources: ['nodes'], action: { kind: 'status', code: 403 } });
    const refused = await stage.join();
    await stage.minutes(1);
    stage.expect('it is said', stage.events('CIDRAssignmentFailed').length > 0);
    heal();
    await untilGiven(stage, refused);
  },
};

/** The write of the only block is under way for longer than anybody waits for it, and the next attempts do not arrive. */
export const lateBlock: Story = {
  title: 'a block whose write may still land goes to no other node',
  world: worldOf('192.168.0.0/24'),
  tell: async (stage) => {
    stage.begin();
    stage.stray('patch nodes', 40);
    const first = await stage.join();
    const fault = { verbs: ['patch'], resources: ['nodes'], name: first.name, times: 2 };
    stage.apiFault({ ...fault, action: { kind: 'drop-before' } });
    await stage.join();
    await untilGiven(stage, first);
    await stage.minutes(2);
  },
};

const API_FAULTS: readonly FaultAction[] = [
  { kind: 'drop-before' },
  { kind: 'drop-after' },
  { kind: 'hang' },
  { kind: 'delay', ms: 30_000 },
];
const TURNS = 30;
/** One less than there are blocks that are not of Services. */
const MOST_NODES = 7;

/** A quarter of an hour in which nodes come, go and come back, requests fail, and leaders die and stand still, by chance. */
export const blocksInStorm: Story = {
  title: 'each node has a block of its own through faults and deaths',
  world: worldOf('192.168.0.0/20', '--service-cluster-ip-range=192.168.8.0/21'),
  tell: async (stage) => {
    const draw = stage.world.streams.of('blocks in a storm');
    const below = (count: number): number => Math.floor(draw() * count);
    const present: Machine[] = [];
    const gone: Machine[] = [];
    stage.begin();
    for (const action of API_FAULTS)
      stage.apiFault({ verbs: ['patch', 'update', 'create', 'get'], chance: 0.04, action });
    stage.apiFault({ verbs: ['watch'], chance: 0.2, action: { kind: 'watch-delay', ms: 8_000 } });
    for (let turn = 0; turn < TURNS; turn++) {
      const back = gone[below(gone.length)];
      if (draw() < 0.3 && present.length > 0) {
        for (const one of present.splice(below(present.length), 1)) {
          await stage.unregister(one);
          gone.push(one);
        }
      } else if (draw() < 0.4 && back !== undefined) {
        present.push(...gone.splice(gone.indexOf(back), 1));
        await stage.register(back);
      } else if (present.length + gone.length < MOST_NODES) present.push(await stage.join());
      const fate = draw();
      if (fate < 0.15) stage.killLeader();
      else if (fate < 0.25) await stage.pauseLeader(between(draw, [5, 40]));
      else if (fate < 0.35) stage.world.api.cutWatches();
      await stage.seconds(draw() ** 3 * 60);
    }
    stage.heal();
    for (const one of present) await untilGiven(stage, one, 1_500_000);
    stage.expect(
      'none is of Services',
      present.every((one) => !/\.168\.([89]|1[0-5])\./.test(String(stage.podCidrOf(one)))),
    );
  },
};
