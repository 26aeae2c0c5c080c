import type { Story } from '../story.ts';

/** A node gets more Pods than it has spare addresses for, and most of them end. */
export const warmAndBack: Story = {
  title: 'addresses come with Pods and go back when the Pods end',
  tell: async (stage) => {
    const node = await stage.node();
    stage.begin();
    await stage.pods(node, 7);
    await stage.end(node, 6);
  },
};
