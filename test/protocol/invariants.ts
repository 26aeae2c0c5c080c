import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { CloudEni } from './cloud-truth.ts';
import type { Setting, World } from './world.ts';

/** Says what is wrong with a state that must never be. */
export function faultOfWorld(world: World, { isUseAllThatCounts }: Setting): string | undefined {
  const fault = findDoubleUse(world) ?? findUnrouted(world) ?? findEarlyReuse(world);
  return fault ?? (isUseAllThatCounts === true ? undefined : findUnexplained(world));
}

/** No address has two Pods. */
function findDoubleUse({ agent }: World): string | undefined {
  const owners = new Map<string, string>();
  for (const [key, { addresses }] of agent.journal.leases) {
    for (const { ip } of addresses) {
      const other = owners.get(ip);
      if (other !== undefined) return `${ip} is leased to ${other} and to ${key}`;
      owners.set(ip, key);
    }
  }
  return undefined;
}

/**
 * Each address of a Pod is routed to the ENI that its packets leave by. So no other node has it either: the cloud may give
 * an address away the moment it is unassigned.
 */
function findUnrouted({ agent, cloud }: World): string | undefined {
  for (const [key, { addresses }] of agent.journal.leases) {
    for (const { ip, eniId } of addresses) {
      if (cloud.foreign.includes(ip)) return `${key} uses ${ip}, which another node has`;
      const eni = cloud.enis.find((other) => other.eniId === eniId);
      if (eni?.isAttached !== true) return `${key} uses ${ip} on ${eniId}, which is not attached`;
      if (!eni.ips.includes(ip)) return `${key} uses ${ip}, which the cloud does not route to ${eniId}`;
    }
  }
  return undefined;
}

function findEarlyReuse({ agent, resting }: World): string | undefined {
  for (const [key, { addresses }] of agent.journal.leases) {
    for (const { ip } of addresses) {
      if (resting.some((one) => one.ip === ip)) return `${key} got ${ip} before its cooldown was over`;
    }
  }
  return undefined;
}

/** All that the cloud holds for the node is in the object, or a call on record explains it. */
function findUnexplained({ nec, cloud, wasRestored }: World): string | undefined {
  // What a restored object has forgotten is found by its tags, which the end of each run shows.
  if (wasRestored) return undefined;
  const infos = new Map((nec.status.eniInfos ?? []).map((eni) => [eni.eniID, eni]));
  const intents = nec.status.intents ?? [];
  for (const eni of cloud.enis) {
    const isBeingMade = intents.some(({ resourceName }) => resourceName === eni.name);
    if (isBeingMade) continue;
    const info = infos.get(eni.eniId);
    if (info === undefined) return `the cloud has ${eni.eniId}, and neither object nor intent says why`;
    const isBeingGiven = intents.some(
      ({ action, eniID }) => action === 'AssignPrivateIpAddresses' && eniID === eni.eniId,
    );
    const unknown = eni.ips.filter((ip) => !ipsOf(info).includes(ip));
    if (unknown.length > 0 && !isBeingGiven) {
      return `the cloud has ${unknown.join(' ')} on ${eni.eniId}, and neither object nor intent says why`;
    }
  }
  return undefined;
}

function ipsOf({ addresses }: NodeEniInfo): readonly string[] {
  return (addresses ?? []).map(({ ip }) => ip);
}

/** Says what a state still lacks to be one in which the system may stay for good. */
export function unfinishedIn(world: World, { warm }: Setting): string | undefined {
  const { agent, calls, nec, cloud, pods, resting } = world;
  const { spec, status } = nec;
  if (pods.includes('waiting')) return 'a Pod waits for an address';
  if (resting.length > 0) return 'an address cools';
  if (calls.length > 0) return 'a call is under way';
  if (agent.writes.length > 0) return 'a write of the agent is under way';
  if ((status.intents ?? []).length > 0) return 'an intent is on record';
  const difference = compare(status.eniInfos ?? [], cloud.enis);
  if (difference !== undefined) return difference;
  const assigned = (status.eniInfos ?? []).flatMap(ipsOf).length;
  const running = pods.filter((stage) => stage === 'running').length;
  const [least, most] = [running + warm.min, running + warm.max];
  if (assigned < least || assigned > most) return `${assigned} addresses for a demand of ${least} to ${most}`;
  if (spec.desiredRouteENIIP !== undefined && spec.desiredRouteENIIP !== assigned) {
    return `the agent asks for ${spec.desiredRouteENIIP}, and there are ${assigned}`;
  }
  if ((spec.releasableIPs ?? []).length > 0 || agent.journal.offers.size > 0) return 'an offer is open';
  if (agent.pool.epoch !== (status.supplyEpoch ?? 0) && status.supplyEpoch !== undefined) {
    return `epoch ${agent.pool.epoch} is in force, ${status.supplyEpoch} is in the object`;
  }
  return undefined;
}

function compare(infos: readonly NodeEniInfo[], enis: readonly CloudEni[]): string | undefined {
  const seen = new Map(enis.map((eni) => [eni.eniId, eni]));
  for (const info of infos) {
    const eni = seen.get(info.eniID);
    if (eni === undefined) return `${info.eniID} is in the object and not in the cloud`;
    if (!eni.isAttached || info.state !== 'Attached')
      return `${info.eniID} is ${info.state}, attached: ${eni.isAttached}`;
    if (info.draining === true) return `${info.eniID} is draining`;
    if ((info.addresses ?? []).some(({ state }) => state !== 'Assigned'))
      return `${info.eniID} has releasing addresses`;
    if ([...ipsOf(info)].sort().join() !== eni.ips.join()) return `${info.eniID} has other addresses in the cloud`;
    if (eni.ips.length === 0) return `${info.eniID} has no address`;
  }
  const extra = enis.find(({ eniId }) => !infos.some(({ eniID }) => eniID === eniId));
  return extra === undefined ? undefined : `${extra.eniId} is in the cloud and not in the object`;
}
