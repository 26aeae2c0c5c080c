import { BACKEND_READY_GATE } from '../../../crd/names.ts';
import { ServiceStage } from '../service-stage.ts';
import type { Story } from '../story.ts';
import { DIRECT, WORLD } from './services.ts';

const COOLDOWN_MS = 10_000;
/** Whole agents beside the cloud controller manager; an address cools down for a short time. */
const WHOLE = { ...WORLD, agentFlags: [], cooldownMs: COOLDOWN_MS } as const;
const WEB = { labels: { app: 'web' }, gates: [BACKEND_READY_GATE] };
const ROLLS = 4;
/** As many Pods as want every address of a node. */
const MOST = 17;

/** Pods of a Service are replaced one by one, each next one on the other node, while agents and the leader die and Pods of nobody come and go. */
export const rollingTargets: Story = {
  title: 'what a load balancer sends to a target arrives in a Pod of its Service while Pods roll',
  world: WHOLE,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    const nodes = [await stage.node(), await stage.node()] as const;
    await services.create('web', { annotations: { [DIRECT]: 'true' } });
    const pods = [...(await stage.pods(nodes[0], 2, WEB)), ...(await stage.pods(nodes[1], 1, WEB))];
    await stage.until('all are ready', () => pods.every((pod) => services.isReady(pod)));
    stage.begin();
    const end = stage.always('a target serves', () => services.serving !== '');
    for (let roll = 0; roll < ROLLS; roll++) {
      const [next = ''] = await stage.pods(nodes[roll % 2 === 0 ? 1 : 0], 1, WEB);
      if (roll === 1) nodes[0].whole?.kill();
      if (roll === 2) stage.killLeader('ccm');
      await stage.until(`${next} is ready`, () => services.isReady(next));
      const [old = ''] = pods.splice(0, 1);
      pods.push(next);
      await stage.delete(old);
      if (roll === 3) for (const { whole } of nodes) whole?.kill();
      // Somebody else wants an address at once, and again when that of the old one has cooled down.
      for (const waitS of [1, 15]) {
        await stage.seconds(waitS);
        for (const node of nodes) await stage.pods(node, 2);
      }
      for (const node of nodes) await stage.end(node, 4);
    }
    end();
    await services.end('Service', 'web');
    await stage.until('no list has an address', () => services.published.length === 0);
  },
};

/** The objects go back to a state of before, nobody describes the cloud again, and targets are published meanwhile. */
export const distrustedLists: Story = {
  title: 'what is published while an agent distrusts its supply is given to no other Pod',
  world: WHOLE,
  tell: async (stage) => {
    const services = new ServiceStage(stage);
    const node = await stage.node();
    await services.create('web', { annotations: { [DIRECT]: 'true' } });
    await stage.until('it is reached', () => services.address('Service', 'web') !== '');
    const before = stage.backup();
    // The epoch grows.
    await stage.pods(node, 12);
    await stage.until('more are there', () => stage.isReady(node));
    stage.begin();
    const heal = stage.partition('ipamd-*');
    stage.restore(before);
    const [target = ''] = await stage.pods(node, 1, WEB);
    await stage.until('it is a target', () => services.isReady(target));
    // Nobody deregisters it.
    const healCcm = stage.partition('ccm-*');
    await stage.endPods(target);
    await stage.seconds(COOLDOWN_MS / 1_000 + 10);
    await stage.make(node, MOST);
    await stage.seconds(10);
    for (const end of [heal, healCcm]) end();
  },
};
