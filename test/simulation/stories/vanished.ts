import { ALLOW_RELEASE_ANNOTATION } from '../../../crd/names.ts';
import type { Machine } from '../machine.ts';
import type { Story } from '../story.ts';

/** All Nodes are deleted while their machines run; one is confirmed, the others register again; then five of eight are deleted. */
export const vanishedNodes: Story = {
  title: 'nodes without a Node keep what they have until a person confirms, or their share of the hour has come',
  tell: async (stage) => {
    const nodes: Machine[] = [];
    for (let at = 0; at < 4; at++) nodes.push(await stage.node());
    const isThere = (node: Machine) => stage.enis(node).length > 0;
    const held = (text: string) => stage.events('NodeReleaseHeld').some((one) => one.includes(text));
    stage.begin();
    for (const node of nodes) await stage.unregister(node);
    await stage.minutes(40);
    stage.expect('all ENIs are there', nodes.every(isThere));
    stage.expect('it is told why', held('the API server has no Node at all'));
    const [first, ...others] = nodes;
    if (first === undefined) throw new Error('there is no node');
    await stage.patchNec(first, { metadata: { annotations: { [ALLOW_RELEASE_ANNOTATION]: 'true' } } });
    await stage.until('what was confirmed is gone', () => !isThere(first), 1_200_000);
    stage.expect('the others are there', others.every(isThere));
    for (const node of others) await stage.register(node);
    await stage.until('they are ready', () => others.every((node) => stage.isReady(node)));
    const [back] = others;
    if (back === undefined) throw new Error('there are four nodes');
    await stage.patchNec(back, { metadata: { annotations: { [ALLOW_RELEASE_ANNOTATION]: 'true' } } });
    await stage.until('what was confirmed of a node that is there does not outlive it', () => {
      const object = stage.world.objects('nodeeniconfigs').find(({ metadata }) => metadata.name === back.name);
      return object?.metadata.annotations?.[ALLOW_RELEASE_ANNOTATION] === undefined;
    });
    const more: Machine[] = [];
    for (let at = 0; at < 5; at++) more.push(await stage.node());
    for (const node of more) await stage.unregister(node);
    await stage.minutes(15);
    stage.killAll();
    await stage.minutes(15);
    stage.expect('three have gone', more.filter(isThere).length === 2);
    stage.expect('it is told why two have not', held('as many as --node-release-percent allows'));
    await stage.until('all have gone', () => !more.some(isThere), 7_200_000);
  },
};
