import { isDeepStrictEqual } from 'node:util';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { eniIdOf, type KeptWorld, placesOf } from './kept-world.ts';

/** Says what is wrong with a state that must never be. */
export function faultOfKept(world: KeptWorld): string | undefined {
  return (
    findDoubleUse(world) ?? findUnrouted(world) ?? findUnexplained(world) ?? findTwoCalls(world) ?? findOthers(world)
  );
}

/** No address has two sandboxes, wherever they are. */
function findDoubleUse({ nodes }: KeptWorld): string | undefined {
  const owners = new Map<string, string>();
  for (const { agent } of nodes) {
    for (const [key, { addresses }] of agent.journal.leases) {
      for (const { ip } of addresses) {
        const other = owners.get(ip);
        if (other !== undefined) return `${ip} is leased to ${other} and to ${key}`;
        owners.set(ip, key);
      }
    }
  }
  return undefined;
}

/** As long as a sandbox has an address, the cloud routes it to the ENI that its packets leave by. */
function findUnrouted({ nodes, cloud }: KeptWorld): string | undefined {
  for (const { agent } of nodes) {
    for (const [key, { addresses }] of agent.journal.leases) {
      for (const { ip, eniId } of addresses) {
        const eni = cloud.enis.find((one) => one.eniId === eniId);
        if (eni?.ips.includes(ip) !== true) return `${key} uses ${ip}, which the cloud does not route to ${eniId}`;
      }
    }
  }
  return undefined;
}

/** What the cloud has on an ENI is in its node's object, or a call on record, under way or doubled explains it. */
function findUnexplained({ nodes, cloud, late }: KeptWorld): string | undefined {
  const calls = nodes.flatMap(({ nec, calls: sent }) => [
    ...(nec.status.intents ?? []),
    ...sent.map(({ intent }) => intent),
  ]);
  for (const [node, { nec }] of nodes.entries()) {
    const eniId = eniIdOf(node);
    const known = ipsOf(nec.status.eniInfos ?? [], eniId);
    const there = cloud.enis.find((one) => one.eniId === eniId)?.ips ?? [];
    const unknown = there.filter((ip) => !known.includes(ip) && !late.includes(`${eniId} ${ip}`));
    const isExplained = calls.some(({ eniID, targetENIID }) => eniID === eniId || targetENIID === eniId);
    if (unknown.length > 0 && !isExplained) return `the cloud has ${unknown.join()} on ${eniId}, and nobody says why`;
  }
  return undefined;
}

/** What is a name's own is marked for it and for no other, wherever it is. */
function findOthers({ nodes, claims }: KeptWorld): string | undefined {
  const owners = new Map<string, string>();
  // Who had it first: its VpcIP is the lock.
  for (const { name, ip } of claims) if (ip !== undefined && !owners.has(ip)) owners.set(ip, name);
  for (const { nec } of nodes) {
    for (const { ip, claim } of (nec.status.eniInfos ?? []).flatMap((eni) => eni.addresses ?? [])) {
      const owner = owners.get(ip);
      if (owner !== undefined && claim?.name !== owner)
        return `${ip} of ${owner} is marked for ${claim?.name ?? 'nobody'}`;
    }
  }
  return undefined;
}

/** Of each claim one node at most has a call on record. */
function findTwoCalls({ nodes, claims }: KeptWorld): string | undefined {
  for (const { name } of claims) {
    const callers = nodes.filter(({ nec }) => (nec.status.intents ?? []).some(({ claim }) => claim === `ns/${name}`));
    if (callers.length > 1) return `two nodes have a call for ${name} on record`;
  }
  return undefined;
}

/** Says what a state still lacks to be one in which the system may stay for good. */
export function unfinishedInKept(world: KeptWorld): string | undefined {
  for (const [node, { nec, agent, calls }] of world.nodes.entries()) {
    if (calls.length > 0) return `a call of node${node + 1} is under way`;
    if ((nec.status.intents ?? []).length > 0) return `node${node + 1} has an intent on record`;
    if (agent.writes.length > 0) return 'a write of an agent is under way';
    const eni = world.cloud.enis.find(({ eniId }) => eniId === eniIdOf(node));
    const known = ipsOf(nec.status.eniInfos ?? [], eniIdOf(node));
    if (!isDeepStrictEqual([...known].sort(), [...(eni?.ips ?? [])].sort()))
      return `node${node + 1} is not as the cloud`;
  }
  for (const { name, pod } of world.claims) {
    if (pod !== undefined && !pod.isRunning) return `the Pod of ${name} waits for its address`;
    const [place, other] = placesOf(world, name);
    if (other !== undefined) return `two nodes have the address of ${name}`;
    if (pod === undefined && place?.address.claim?.uid !== undefined)
      return `${name} has no Pod, and its mark names one`;
  }
  return findSandbox(world);
}

function findSandbox({ nodes, claims }: KeptWorld): string | undefined {
  const live = new Set(claims.map(({ pod }) => pod?.uid));
  const leases = nodes.flatMap(({ agent }) => [...agent.journal.leases.values()]);
  const left = leases.find(({ podUid }) => !live.has(podUid));
  return left === undefined ? undefined : `the sandbox of ${left.podUid} is still there`;
}

function ipsOf(infos: readonly NodeEniInfo[], eniId: string): readonly string[] {
  return (infos.find(({ eniID }) => eniID === eniId)?.addresses ?? []).map(({ ip }) => ip);
}
