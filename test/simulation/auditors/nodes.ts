import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import type { OpenAuditor } from './auditor.ts';

/**
 * A20: cloud-controller-manager deletes no Node whose instance the cloud has, and changes none of others. At rest no Node waits whose
 * instance is there, and none is left whose instance is gone, unless an event says why.
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
    const told = held.map((event) => textOf(recordOf(event['involvedObject'])['name']));
    for (const node of world.objects('nodes')) {
      const { name } = node.metadata;
      if (isForeign(node)) continue;
      const isThere = world.host.model.state.instances.has(instanceOf(node));
      const waits = recordsOf(recordOf(node['spec'])['taints']).some(({ key }) => /\/uninitialized$/.test(textOf(key)));
      if (isThere && waits) yield `${name} waits to be initialised`;
      if (!isThere && !told.includes(name)) yield `${name} is left, and its instance is gone`;
    }
  },
});

function instanceOf({ spec }: KubeObject): string {
  return textOf(recordOf(spec)['providerID']).split('/').at(-1) ?? '';
}

function isForeign({ spec, metadata: { labels = {} } }: KubeObject): boolean {
  const isOfOthers = /^aws:|kn-/.test(textOf(recordOf(spec)['providerID']));
  return isOfOthers || labels['node.kubernetes.io/instance-type'] === 'eklet';
}
