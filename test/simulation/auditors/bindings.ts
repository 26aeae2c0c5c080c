import type { KubeObject } from '../../../kube/kube-client.ts';
import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import type { Told } from '../life.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';
import { necFacts } from './nec-facts.ts';

/** How the ids of subnets begin in which ENIs are made. */
const PODS_SUBNET = 'subnet-pods';
const RESOURCE = 'tke.cloud.tencent.com/eni-ip';

/** Objects that a life knows, by resource and by namespace and name. */
type Knowledge = ReadonlyMap<'pods' | 'nodeeniconfigs', Map<string, KubeObject>>;

/**
 * A17: the extender binds no Pod to a node that has no room for it, by what that life was told and has bound itself. At rest a
 * Pod that it bound has its address, and for one that waits no node has a place and an address. Each Pod is let in with its request.
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
      const pods = world.objects('pods');
      const stored: Knowledge = new Map([
        ['pods', byKey(pods)],
        ['nodeeniconfigs', byKey(world.objects('nodeeniconfigs'))],
      ]);
      for (const pod of pods) {
        const { name, namespace } = pod.metadata;
        if (namespace !== 'default') continue;
        if (nodeOf(pod) !== '' && textOf(recordOf(pod['status'])['podIP']) === '') yield `${name} has no address`;
        if (nodeOf(pod) !== '') continue;
        for (const node of nodes)
          if (hasPlace(world, stored, pod, node)) yield `${name} waits, and ${node} has an address or a place for it`;
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

/** How many addresses a node may have, and which are taken: those of its Pods, and by name those that are kept. */
type Load = {
  readonly used: number;
  readonly plain: number;
  readonly kept: ReadonlySet<string>;
  readonly room: number;
};

/** Addresses that Pods and kept addresses of a node take, and how many it may have. */
function loadOf(knows: Knowledge, node: string): Load {
  const nec = knows.get('nodeeniconfigs')?.get(`/${node}`);
  if (nec === undefined) return { used: 1, plain: 1, kept: new Set(), room: 0 };
  const { spec, status } = necFacts(nec);
  const pods = [...(knows.get('pods')?.values() ?? [])].filter((pod) => nodeOf(pod) === node && !hasEnded(pod));
  const marks = (status.eniInfos ?? []).flatMap(({ addresses = [] }) =>
    addresses.flatMap(({ claim }) => (claim === undefined ? [] : [`${claim.namespace}/${claim.name}`])),
  );
  const kept = new Set([...marks, ...pods.filter(isKept).map(keyOf)]);
  const plain = pods.filter((pod) => !isKept(pod)).reduce((sum, pod) => sum + requestOf(pod), 0);
  const { maxRouteENI = 0, maxIPPerENI = 0 } = spec;
  return { used: plain + kept.size, plain, kept, room: maxRouteENI * maxIPPerENI };
}

/**
 * Whether a node has a place for a Pod, and an address on its ENIs that no Pod and no name has, or one in a subnet for an ENI with room
 * or for a new ENI, which takes one itself. Of a Pod that keeps its address only the node that has it, or while no node has it.
 */
function hasPlace(world: AuditedWorld, stored: Knowledge, pod: KubeObject, node: string): boolean {
  const machine = world.machines.find(({ name }) => name === node);
  const nec = stored.get('nodeeniconfigs')?.get(`/${node}`);
  if (machine === undefined || machine.isOff || nec === undefined) return false;
  const { used, plain, kept, room } = loadOf(stored, node);
  if (isKept(pod)) {
    if (kept.has(keyOf(pod))) return true;
    const others = [...(stored.get('nodeeniconfigs')?.keys() ?? [])].map((key) => loadOf(stored, key.slice(1)));
    if (others.some((one) => one.kept.has(keyOf(pod)))) return false;
  }
  const need = requestOf(pod);
  if (used + need > room) return false;
  const { enis, subnets } = world.host.model.state;
  const shared = [...enis.values()].filter(
    ({ isPrimary, attachment }) => !isPrimary && attachment?.instanceId === machine.instanceId,
  );
  const addresses = shared.map(({ ips }) => [...ips.values()].filter(({ isPrimary }) => !isPrimary).length);
  const has = addresses.reduce((sum, one) => sum + one, 0);
  if (!isKept(pod) && has - kept.size - plain >= need) return true;
  const { maxRouteENI = 0, maxIPPerENI = 0 } = necFacts(nec).spec;
  const freeOf = (id: string): number => subnets.get(id)?.pool.free ?? 0;
  const isOnEni = shared.some(
    ({ subnetId }, at) => maxIPPerENI - (addresses[at] ?? 0) >= need && freeOf(subnetId) >= need,
  );
  const forEnis = [...subnets.values()].filter(({ subnetId }) => subnetId.startsWith(PODS_SUBNET));
  return isOnEni || (shared.length < maxRouteENI && forEnis.some(({ pool }) => pool.free > need));
}

function isKept({ metadata }: KubeObject): boolean {
  return metadata.annotations?.['tke.cloud.tencent.com/vpc-ip-claim-delete-policy'] === 'Never';
}

function byKey(objects: readonly KubeObject[]): Map<string, KubeObject> {
  return new Map(objects.map((one) => [keyOf(one), one]));
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
