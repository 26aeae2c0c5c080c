import type { KubeObject } from '../../../kube/kube-client.ts';
import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import type { Told } from '../life.ts';
import type { OpenAuditor } from './auditor.ts';
import { necFacts } from './nec-facts.ts';

const RESOURCE = 'tke.cloud.tencent.com/eni-ip';

/** Objects that a life knows, by resource and by namespace and name. */
type Knowledge = ReadonlyMap<'pods' | 'nodeeniconfigs', Map<string, KubeObject>>;

/**
 * A17: the extender binds no Pod to a node that has no room for it, by what that life was told and has bound itself. At rest a
 * Pod that it bound has its address, one that it did not fits no node, and all replicas say the same of it. Each Pod is let in with its request.
 */
export const openBindings: OpenAuditor = (world) => {
  const known = new Map<string, Knowledge>();
  const knowledgeOf = (life: string): Knowledge => {
    const before = known.get(life);
    if (before !== undefined) return before;
    const made = new Map([['pods', new Map()] as const, ['nodeeniconfigs', new Map()] as const]);
    known.set(life, made);
    return made;
  };
  return {
    name: 'A17',
    told: (life, told) => {
      if (life.startsWith('extender-')) learn(knowledgeOf(life), told);
    },
    change: (plural, { type, object, previous }) => {
      if (plural !== 'pods' || !world.network.isUsed) return;
      const { name, namespace } = object.metadata;
      if (type === 'ADDED' && namespace === 'default' && requestOf(object) !== 1)
        world.violate('A17', `${name} is let in and asks for ${requestOf(object)} addresses`);
      const node = nodeOf(object);
      if (node === '' || previous === undefined || nodeOf(previous) !== '') return;
      if (!world.writer.startsWith('extender-')) return;
      const knows = knowledgeOf(world.writer);
      knows.get('pods')?.set(keyOf(object), object);
      const { used, room } = loadOf(knows, node);
      if (used > room)
        world.violate('A17', `${world.writer} binds ${name} to ${node}, where ${used} of ${room} addresses are taken`);
    },
    rest: function* () {
      if (!world.network.isUsed) return;
      const nodes = world.objects('nodes').map(({ metadata }) => metadata.name);
      for (const pod of world.objects('pods')) {
        const { name, namespace } = pod.metadata;
        if (namespace !== 'default') continue;
        if (nodeOf(pod) !== '' && textOf(recordOf(pod['status'])['podIP']) === '') yield `${name} has no address`;
        if (nodeOf(pod) !== '') continue;
        const answers = [...world.network.fitting(pod, nodes)].map(([life, names]) => [life, names.join(' ')] as const);
        for (const [life, names] of answers) {
          if (names !== '') yield `${name} waits, and by ${life} it fits ${names}`;
          if (names !== answers[0]?.[1])
            yield `${life} says that ${name} fits ${names}, and ${answers[0]?.[0]} does not`;
        }
      }
    },
  };
};

function learn(knows: Knowledge, told: Told): void {
  if (told.plural !== 'pods' && told.plural !== 'nodeeniconfigs') return;
  const objects = knows.get(told.plural);
  if (told.kind === 'page') {
    if (told.isFirst) objects?.clear();
    for (const item of told.items) objects?.set(keyOf(item), item);
  } else if (told.event.kind === 'deleted') objects?.delete(keyOf(told.event.object));
  else if (told.event.kind !== 'bookmark') objects?.set(keyOf(told.event.object), told.event.object);
}

/** Addresses that Pods and kept addresses of a node take, and how many it may have. */
function loadOf(knows: Knowledge, node: string): { readonly used: number; readonly room: number } {
  const nec = knows.get('nodeeniconfigs')?.get(`/${node}`);
  if (nec === undefined) return { used: 1, room: 0 };
  const { spec, status } = necFacts(nec);
  const pods = [...(knows.get('pods')?.values() ?? [])].filter((pod) => nodeOf(pod) === node && !hasEnded(pod));
  const isKept = ({ metadata }: KubeObject): boolean =>
    metadata.annotations?.['tke.cloud.tencent.com/vpc-ip-claim-delete-policy'] === 'Never';
  const marks = (status.eniInfos ?? []).flatMap(({ addresses = [] }) =>
    addresses.flatMap(({ claim }) => (claim === undefined ? [] : [`${claim.namespace}/${claim.name}`])),
  );
  const kept = new Set([...marks, ...pods.filter(isKept).map(keyOf)]);
  const plain = pods.filter((pod) => !isKept(pod)).reduce((sum, pod) => sum + requestOf(pod), 0);
  const { maxRouteENI = 0, maxIPPerENI = 0 } = spec;
  return { used: plain + kept.size, room: maxRouteENI * maxIPPerENI };
}

function requestOf({ spec }: KubeObject): number {
  return recordsOf(recordOf(spec)['containers']).reduce(
    (sum, { resources }) => sum + Number(recordOf(recordOf(resources)['limits'])[RESOURCE] ?? 0),
    0,
  );
}

function nodeOf({ spec }: KubeObject): string {
  return textOf(recordOf(spec)['nodeName']);
}

function hasEnded({ status }: KubeObject): boolean {
  return ['Succeeded', 'Failed'].includes(textOf(recordOf(status)['phase']));
}

function keyOf({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}
