import { POD_ANNOTATION } from '../../../crd/names.ts';
import type { Story } from '../story.ts';
import { KEPT, keptAddress } from './pods.ts';
import { WHOLE } from './whole-nodes.ts';

/** A Pod whose address is kept goes from node to node and back, by force in every other turn, between Pods of the pool. */
export const keptOnNodes: Story = {
  title: 'packets of an address that is kept arrive where its Pod runs, and nowhere else',
  world: { ...keptAddress.world, ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const nodes = [await stage.node(), await stage.node()] as const;
    await stage.pods(nodes[0], 4);
    await stage.pod('web-0', nodes[0], KEPT);
    stage.begin();
    const ip = stage.ipOf('web-0');
    for (const [from, to] of [
      [0, 1],
      [1, 0],
      [0, 1],
      [1, 0],
    ] as const) {
      if (from === 0) stage.removePods(nodes[0], 1);
      else await stage.endPods('web-0');
      await stage.make(nodes[from], 2);
      await stage.pod('web-0', nodes[to], KEPT);
      stage.expect(`web-0 has ${ip}`, stage.ipOf('web-0') === ip);
    }
    await stage.end(nodes[0], 9);
    const claims = () => stage.world.objects('vpcipclaims').map(({ metadata }) => metadata.name);
    await stage.until('the claim ends', () => !claims().includes('web-0'), 3_600_000);
  },
};

const EXCLUSIVE = { annotations: { [POD_ANNOTATION.networks]: 'tke-direct-eni' } } as const;
const KEPT_ENI = { annotations: { ...KEPT.annotations, ...EXCLUSIVE.annotations } } as const;

const OF_ENIS = {
  ...{ ...WHOLE, cooldownMs: 10_000 },
  flags: ['--enable-static-ip=true', '--enable-direct-eni=true', '--claim-expired-duration=10m'],
} as const;

/** Pods that each have a whole ENI, between Pods of the pool. */
export const wholeEnis: Story = {
  title: 'a Pod has an ENI of its own, and the next one has it after its cooldown',
  world: OF_ENIS,
  tell: async (stage) => {
    const node = await stage.node({ cores: 8 });
    await stage.pods(node, 2);
    stage.begin();
    for (let turn = 0; turn < 3; turn++) {
      await stage.pods(node, 2, EXCLUSIVE);
      await stage.pods(node, 2);
      await stage.end(node, 4);
    }
    await stage.pods(node, 1, EXCLUSIVE);
  },
};

/** A Pod whose ENI is kept goes from node to node and back, and then there is none for a while. */
export const keptEni: Story = {
  title: 'an ENI that is kept follows the Pods of its name, and a Pod that keeps none gives its own back',
  world: OF_ENIS,
  tell: async (stage) => {
    const nodes = [await stage.node({ cores: 8 }), await stage.node({ cores: 8 })] as const;
    const eniOf = () =>
      [...stage.enis(nodes[0]), ...stage.enis(nodes[1])].find(({ ips }) => ips.has(stage.ipOf('web-0') ?? ''));
    stage.begin();
    await stage.pod('web-0', nodes[0], KEPT_ENI);
    const { eniId } = eniOf() ?? {};
    const others = await stage.pods(nodes[0], 2, EXCLUSIVE);
    for (const at of [1, 0, 1] as const) {
      await stage.endPods('web-0');
      await stage.pod('web-0', nodes[at], KEPT_ENI);
      stage.expect(`it has ${eniId}`, eniOf()?.eniId === eniId);
    }
    await stage.endPods('web-0', ...others);
    await stage.until('its claim and its VpcENI end', () => stage.world.objects('vpcipclaims').length === 0, 3_600_000);
    await stage.until('each node has a spare one', () => stage.world.objects('vpcenis').length === 2, 1_200_000);
  },
};

/** An ENI that is kept has moved, and its Pod has ended, when the API server goes back to a time before it was made. */
export const forgottenEni: Story = {
  title: 'an ENI that moved is found where it is when a restored API server does not know it',
  world: OF_ENIS,
  tell: async (stage) => {
    const nodes = [await stage.node({ cores: 8 }), await stage.node({ cores: 8 })] as const;
    const backup = stage.backup();
    stage.begin();
    for (const node of nodes) {
      await stage.pod('web-0', node, KEPT_ENI);
      await stage.endPods('web-0');
    }
    // The next processes know nothing of it either.
    stage.killAll();
    stage.restore(backup);
    await stage.minutes(10);
  },
};

/** The same, to a time in which another node had it: its VpcENI names that node. */
export const returnedEni: Story = {
  ...forgottenEni,
  title: 'an ENI that moved is found where it is when a restored API server has it where it was',
  tell: async (stage) => {
    const nodes = [await stage.node({ cores: 8 }), await stage.node({ cores: 8 })] as const;
    stage.begin();
    await stage.pod('web-0', nodes[0], KEPT_ENI);
    const ip = stage.ipOf('web-0');
    const backup = stage.backup();
    await stage.endPods('web-0');
    await stage.pod('web-0', nodes[1], KEPT_ENI);
    await stage.endPods('web-0');
    stage.killAll();
    stage.restore(backup);
    await stage.minutes(10);
    await stage.endPods('web-0');
    await stage.pod('web-0', nodes[1], KEPT_ENI);
    stage.expect('it has its address', stage.ipOf('web-0') === ip);
  },
};

/** An address moves back within seconds; the task fails, and descriptions are of before. */
export const failedReturn: Story = {
  title: 'an address is not there again because an old description has it',
  world: { ...keptAddress.world, ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const nodes = [await stage.node(), await stage.node()] as const;
    await stage.pod('web-0', nodes[0], KEPT);
    const ip = stage.ipOf('web-0');
    // Longer than a description is old.
    await stage.minutes(1);
    stage.begin();
    await stage.endPods('web-0');
    await stage.pod('web-0', nodes[1], KEPT);
    await stage.endPods('web-0');
    const heal = stage.cloudFault({ fault: { kind: 'stale', ms: 20_000 }, actions: ['DescribeNetworkInterfaces'] });
    const fault = { kind: 'task', fate: 'fail' } as const;
    stage.cloudFault({ fault, actions: ['MigratePrivateIpAddress'], times: 1 });
    await stage.create('web-0', nodes[0], KEPT);
    await stage.seconds(24);
    heal();
    await stage.until('it has its address', () => stage.ipOf('web-0') === ip, 600_000);
  },
};

/** An address moves back within seconds, with a request that is lost; descriptions are of before. */
export const lostReturn: Story = {
  title: 'an address is not there again because a description of before its moves has it',
  world: { ...keptAddress.world, ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const nodes = [await stage.node(), await stage.node()] as const;
    await stage.pod('web-0', nodes[0], KEPT);
    const ip = stage.ipOf('web-0');
    // Longer than a description is old.
    await stage.minutes(1);
    stage.begin();
    await stage.endPods('web-0');
    await stage.pod('web-0', nodes[1], KEPT);
    await stage.endPods('web-0');
    const heal = stage.cloudFault({ fault: { kind: 'stale', ms: 40_000 }, actions: ['DescribeNetworkInterfaces'] });
    const fault = { kind: 'error', code: 'InternalError' } as const;
    stage.cloudFault({ fault, actions: ['MigratePrivateIpAddress'], times: 1 });
    await stage.create('web-0', nodes[0], KEPT);
    await stage.seconds(60);
    heal();
    await stage.until('it has its address', () => stage.ipOf('web-0') === ip, 600_000);
  },
};
