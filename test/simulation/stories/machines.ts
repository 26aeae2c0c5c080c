import type { Story } from '../story.ts';
import { agentOf, WHOLE } from './whole-nodes.ts';

/** The disk is full for 20 seconds while Pods end and come; in the second turn the agent dies then. */
export const fullDisk: Story = {
  title: 'Pods wait while the disk is full, and those that end do not',
  world: { ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const node = await stage.node();
    const agent = agentOf(node);
    await stage.pods(node, 4);
    stage.begin();
    for (const dies of [false, true]) {
      agent.host.journal.isFull = true;
      await stage.end(node, 2);
      const names = await stage.make(node, 5);
      if (dies) agent.kill();
      await stage.seconds(20);
      stage.expect(
        'no lease is made',
        names.every((name) => stage.ipOf(name) === undefined),
      );
      agent.host.journal.isFull = false;
      await stage.until('all have addresses', () => names.every((name) => stage.ipOf(name) !== undefined));
    }
    await stage.end(node, 10);
  },
};

/** A machine boots while Pods run, come and go. */
export const reboots: Story = {
  title: 'the Pods of a machine that boots have their network again',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    await stage.pods(node, 9);
    stage.begin();
    for (let turn = 0; turn < 3; turn++) {
      await stage.make(node, 2);
      await stage.seconds(turn);
      stage.reboot(node);
      await stage.end(node, 3);
      await stage.minutes(1);
    }
  },
};

/** A machine boots when its agent has just sent an offer, which arrives late: the new agent, whose writes are lost, knows nothing of it. */
export const offerBeforeBoot: Story = {
  title: 'an address goes to no Pod whose offer of before a boot is on its way',
  world: { ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const node = await stage.node();
    const agent = agentOf(node);
    await stage.pods(node, 7);
    await stage.end(node, 7);
    await stage.seconds(20);
    stage.begin();
    const hasOffer = () => (agent.host.journal.content?.offers.size ?? 0) > 0;
    await stage.until('no offer is open', () => !hasOffer());
    agent.life?.disturbNext('update nodeeniconfigs', { kind: 'stray', ms: 12_000 });
    await stage.until('an offer is on its way', hasOffer);
    const next = 'agent-node-01-002';
    stage.apiFault({ userAgent: next, verbs: ['update'], times: 6, action: { kind: 'drop-before' } });
    stage.reboot(node);
    const names = await stage.make(node, 14);
    await stage.until('all have addresses', () => names.every((name) => stage.ipOf(name) !== undefined));
    await stage.end(node, 14);
  },
};

/** The journal is lost with an agent, also while nobody tells the next one which ENI an address is of; and that one dies too. */
export const lostJournal: Story = {
  title: 'an agent without its journal takes its Pods over, and gives their addresses to nobody',
  world: { ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const node = await stage.node();
    const agent = agentOf(node);
    await stage.pods(node, 4);
    stage.begin();
    for (const isDeaf of [false, true]) {
      const heal = isDeaf ? stage.partition('agent-*') : () => {};
      agent.host.journal.lose();
      agent.kill();
      await stage.seconds(10);
      agent.kill();
      heal();
      await stage.pods(node, 3);
    }
    await stage.end(node, 10);
  },
};
