import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';

/**
 * A20: cloud-controller-manager deletes no Node whose instance the cloud has, and changes none of others. At rest no Node waits whose
 * instance is there, and none is left whose instance is gone, unless an event says why and that is still so.
 */
export const openNodesAreInstances: OpenAuditor = (world) => ({
  name: 'A20',
  change: (plural, { object, type }) => {
    if (plural !== 'nodes' || !world.writer.startsWith('ccm-')) return;
    const { name } = object.metadata;
    if (isForeign(object)) world.violate('A20', `${world.writer} changes ${name}, which is another's`);
    if (type === 'DELETED' && world.host.model.state.instances.has(instanceOf(object)))
      world.violate('A20', `${name} is deleted, and its instance is there`);
  },
  rest: function* () {
    if (!world.objects('endpoints').some(({ metadata }) => metadata.name === 'cloud-controller-manager')) return;
    const held = world.objects('events').filter((event) => event['reason'] === 'NodeDeletionHeld');
    const whys = (node: KubeObject): readonly string[] =>
      held.flatMap(({ involvedObject, message }) =>
        recordOf(involvedObject)['uid'] === node.metadata.uid ? [textOf(message)] : [],
      );
    const isHeld = (node: KubeObject): boolean =>
      whys(node).some((why) => HOLDS.some(([words, holds]) => words.test(why) && holds(node, world)));
    for (const node of world.objects('nodes')) {
      const { name } = node.metadata;
      if (isForeign(node)) continue;
      const isThere = world.host.model.state.instances.has(instanceOf(node));
      const waits = recordsOf(recordOf(node['spec'])['taints']).some(({ key }) => /\/uninitialized$/.test(textOf(key)));
      if (isThere && waits) yield `${name} waits to be initialised`;
      if (!isThere && !isHeld(node)) yield `${name} is left, and its instance is gone`;
    }
  },
});

/** Why a Node may be left, by the words of its event, and what shows that it is so. */
const HOLDS: readonly (readonly [words: RegExp, holds: (node: KubeObject, world: AuditedWorld) => boolean])[] = [
  [
    /its instance was never described/,
    ({ metadata }) => metadata.annotations?.['tke.cloud.tencent.com/seen-instance'] === undefined,
  ],
  [
    /names the same instance/,
    (node, world) => world.objects('nodes').some((one) => one !== node && instanceOf(one) === instanceOf(node)),
  ],
  [/no answer of the cloud has any instance/, (_, { host }) => host.model.state.instances.size === 0],
];

function instanceOf({ spec }: KubeObject): string {
  return textOf(recordOf(spec)['providerID']).split('/').at(-1) ?? '';
}

function isForeign({ spec, metadata: { labels = {} } }: KubeObject): boolean {
  const isOfOthers = /^aws:|kn-/.test(textOf(recordOf(spec)['providerID']));
  return isOfOthers || labels['node.kubernetes.io/instance-type'] === 'eklet';
}
