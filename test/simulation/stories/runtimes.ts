import type { Story } from '../story.ts';
import { agentOf, WHOLE } from './whole-nodes.ts';

/** The agent looks for leases to collect every second, while ADDs take up to three. */
export const busyCollection: Story = {
  title: 'no ADD under way is collected, whose sandbox no runtime lists yet',
  world: { agentFlags: ['--gc-interval=1s'] },
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    await stage.pods(node, 5);
    await stage.end(node, 5);
  },
};

/** The runtime lists nothing for a while, as one that has lost its state, and the API server says nothing for a part of it. */
export const emptyRuntime: Story = {
  title: 'Pods keep their network while the runtime lists nothing',
  world: WHOLE,
  tell: async (stage) => {
    const node = await stage.node();
    const agent = agentOf(node);
    const { host } = agent;
    await stage.pods(node, 3);
    stage.begin();
    // What an agent takes over is as old as the machine: no age protects it.
    host.journal.lose();
    agent.kill();
    host.listsNothing = true;
    const heal = stage.partition('agent-*');
    await stage.minutes(5);
    heal();
    await stage.pods(node, 2);
    await stage.minutes(3);
    host.listsNothing = false;
    await stage.end(node, 2);
  },
};

/** Sandboxes go without a DEL, and then with two, the second of which comes when the next Pods run. */
export const carelessRuntime: Story = {
  title: 'what a DEL never says is collected, and what it says twice ends once',
  world: { ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const node = await stage.node();
    const { runtime } = agentOf(node);
    stage.begin();
    for (const dels of ['never', 'twice'] as const) {
      await stage.pods(node, 4);
      runtime.dels = dels;
      await stage.end(node, 4);
      await stage.pods(node, 7);
      runtime.dels = 'once';
      await stage.end(node, 7);
    }
    await stage.until('the addresses are given back', () => stage.supply(node).length <= 5, 3_600_000);
  },
};

/** Pods are deleted without grace, so that their objects are gone before their sandboxes. */
export const forcedDeletion: Story = {
  title: 'an address of a Pod that is deleted by force is free when its sandbox is gone',
  world: { ...WHOLE, cooldownMs: 10_000 },
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    for (let turn = 0; turn < 3; turn++) {
      await stage.pods(node, 6);
      stage.removePods(node, 6);
    }
    await stage.minutes(1);
  },
};
