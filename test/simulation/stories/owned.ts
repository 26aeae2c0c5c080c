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

/** Pods that each have a whole ENI, between Pods of the pool. */
export const wholeEnis: Story = {
  title: 'a Pod has an ENI of its own, and the next one has it after its cooldown',
  world: { ...WHOLE, cooldownMs: 10_000, flags: ['--enable-static-ip=true', '--enable-direct-eni=true'] },
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
