import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';
import { VANDALISM } from '../standins/vandals.ts';
import type { Story } from '../story.ts';
import { between } from '../streams.ts';
import { agentOf, WHOLE } from './whole-nodes.ts';

async function untilServing(stage: Stage, machine: Machine): Promise<void> {
  await stage.until(`the agent of ${machine.name} serves`, () => agentOf(machine).isServing);
}

/** The shortest story of an agent: what it does for each Pod. */
export const onePod: Story = {
  title: 'a Pod comes and goes',
  world: { ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    await stage.pods(node, 1);
    await stage.end(node, 1);
  },
};

/** Pods come, more than are warm, and go: the agent asks for addresses, offers them, and takes them up again. */
export const comeAndGo: Story = {
  title: 'packets of Pods go their way while Pods come and go',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    await stage.pods(node, 7);
    await stage.end(node, 6);
  },
};

/** More Pods than one ENI has addresses. */
export const secondEni: Story = {
  title: 'ENIs are plugged in and out while Pods come and go',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 6);
    stage.begin();
    await stage.pods(node, 8);
    stage.expect('the Pods need two ENIs or more', (stage.nec(node).status.eniInfos?.length ?? 0) >= 2);
    await stage.end(node, 10);
    await stage.until('one ENI is left', () => stage.nec(node).status.eniInfos?.length === 1, 3_600_000);
  },
};

/** Addresses are used again at once by the Pods that wait for them. */
export const oneAfterTheOther: Story = {
  title: 'an address goes from Pod to Pod after its cooldown',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    for (let turn = 0; turn < 4; turn++) {
      await stage.pods(node, 5);
      await stage.end(node, 5);
    }
  },
};

/** Agents die while Pods come and go. */
export const restarts: Story = {
  title: 'Pods keep their network while agents die',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 2);
    stage.begin();
    const draw = stage.world.streams.of('restarts');
    for (let turn = 0; turn < 6; turn++) {
      await stage.make(node, 2);
      await stage.seconds(between(draw, [0, 2]));
      agentOf(node).kill();
      if (turn % 2 === 1) await stage.end(node, 3);
      await stage.seconds(between(draw, [2, 20]));
    }
    await untilServing(stage, node);
  },
};

/** Pods are deleted while their ADD waits for an address, or is being answered. */
export const hurried: Story = {
  title: 'Pods that are deleted before they run leave nothing',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    const draw = stage.world.streams.of('hurried');
    for (let turn = 0; turn < 5; turn++) {
      await stage.make(node, 7);
      await stage.seconds(between(draw, [0, 2.5]));
      await stage.end(node, 7);
    }
    await stage.until('the addresses are given back', () => stage.supply(node).length <= 5, 3_600_000);
  },
};

/** An agent is started with another rule mode, and with the first one again. */
export const otherRuleMode: Story = {
  title: 'packets go on while the rule mode changes, and back',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 7);
    stage.begin();
    for (const mode of ['per-pod', 'compact']) {
      agentOf(node).restartWith(`--rule-mode=${mode}`);
      await stage.seconds(10);
      await untilServing(stage, node);
      await stage.pods(node, 1);
      await stage.end(node, 2);
    }
  },
};

/** Others change what is the agent's, one thing after the other, also while no agent runs. */
export const vandals: Story = {
  title: 'what others change on a node is mended within seconds',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 3);
    stage.begin();
    for (const what of VANDALISM) {
      await stage.people(agentOf(node).vandalise(what));
      await stage.seconds(12);
    }
    for (const what of VANDALISM) {
      agentOf(node).kill();
      await stage.people(agentOf(node).vandalise(what));
      await stage.seconds(20);
    }
  },
};

/** The leader stands still while addresses are on offer, and what the agent writes is lost. */
export const offersTakenBack: Story = {
  title: 'an address on offer goes to no Pod before it is taken back',
  world: { ...WHOLE, replicas: 1, cooldownMs: 10_000 },
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 7);
    stage.begin();
    await stage.end(node, 7);
    for (let turn = 0; turn < 2; turn++) {
      const leader = stage.world.leader?.life;
      leader?.pause();
      await stage.until(
        'addresses are on offer',
        () => (stage.nec(node).spec.releasableIPs?.length ?? 0) > 0,
        3_600_000,
      );
      const heal = stage.apiFault({
        ...{ userAgent: 'agent-*', verbs: ['update', 'patch'], chance: 1, action: { kind: 'drop-before' } },
      });
      const names = await stage.make(node, 9);
      await stage.seconds(4);
      leader?.resume();
      await stage.seconds(4);
      heal();
      await stage.until('all have addresses', () => names.every((name) => stage.ipOf(name) !== undefined));
      await stage.end(node, 9);
    }
  },
};

/** More Pods than there are addresses, and those that wait are deleted. */
export const fullNode: Story = {
  title: 'Pods that wait for addresses end at once when they are deleted',
  world: {
    ...WHOLE,
    cloud: {
      vpcId: 'vpc-0000test',
      subnets: [
        { subnetId: 'subnet-podsa000', zone: 'ap-guangzhou-3', cidr: '10.1.0.0/28' },
        { subnetId: 'subnet-nodes000', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/24' },
      ],
    },
  },
  tell: async (stage) => {
    const node = await stage.node();
    const { pool } = stage.world.host.model.state.subnet('subnet-podsa000');
    while (pool.free > 0) pool.take();
    stage.begin();
    await stage.pods(node, 5);
    await stage.make(node, 4);
    await stage.seconds(5);
    await stage.end(node, 4);
    await stage.end(node, 4);
  },
};

/** The API server goes back to a state of before the Pods of now. */
export const restoredNode: Story = {
  title: 'Pods keep their network when the API server is restored',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 3);
    const backup = stage.backup();
    stage.begin();
    await stage.pods(node, 6);
    await stage.seconds(5);
    stage.restore(backup);
    await stage.pods(node, 3);
  },
};

/** Somebody edits the status of a node while nobody leads: the ENI of its Pods is not in it for a while. */
export const editedStatus: Story = {
  title: 'Pods keep their network while somebody takes their ENI out of the object',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 3);
    stage.begin();
    const cut = stage.partition('ipamd-*');
    const supplyEpoch = (stage.nec(node).status.supplyEpoch ?? 0) + 1;
    await stage.patchNec(node, { status: { eniInfos: [], supplyEpoch } }, 'status');
    await stage.seconds(45);
    cut();
    await stage.minutes(2);
  },
};
