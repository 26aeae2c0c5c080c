import { RELEASE_STATE } from '../../../crd/cilium-node.ts';
import type { Model, Move } from '../explore.ts';
import { agentMoves, contentOf, noteOutdated } from './cilium-agent-moves.ts';
import { dropRefused, ipamdMoves, spareOf } from './cilium-ipamd-moves.ts';
import { type CiliumSetting, type CiliumWorld, firstWorld, SETTINGS } from './cilium-world.ts';

/** Puts ipamd, the cloud, Cilium's agent, its Pods, time and what may befall them together. */
export function ciliumModel(setting: CiliumSetting): Model<CiliumWorld> {
  return {
    initial: firstWorld(setting),
    keyOf,
    spentOf: ({ left }) => {
      const { crashes, faults, pods, wishes } = setting.budget;
      const spent = [crashes - left.crashes, faults - left.faults, pods - left.pods, wishes - left.wishes];
      return spent.reduce((sum, count, i) => sum + (count << (4 * i)), 0);
    },
    movesOf: (world) =>
      [...agentMoves(world), ...ipamdMoves(world, setting), ...outerMoves(world, setting)].map((move) => ({
        ...move,
        next: dropRefused(noteOutdated(world, move.next)),
      })),
    faultOf,
    unfinished: unfinishedIn,
  };
}

function outerMoves(world: CiliumWorld, { wishes, budget }: CiliumSetting): readonly Move<CiliumWorld>[] {
  const { left, pods, now } = world;
  const moves: Move<CiliumWorld>[] = [];
  const unknown = [...pods.values()].filter(({ isKnown }) => !isKnown);
  if (unknown.every(({ age }) => age + 1 < SETTINGS.settleMs)) {
    const older = new Map([...pods].map(([name, pod]) => [name, pod.isKnown ? pod : { ...pod, age: pod.age + 1 }]));
    moves.push({ label: 'time passes', next: { ...world, pods: older, now: now + 1 }, isFair: true });
  }
  const wish = wishes[budget.wishes - left.wishes + 1];
  if (left.wishes > 0 && wish !== undefined) {
    const spent = { ...left, wishes: left.wishes - 1 };
    moves.push({ label: `${wish} free ones are wanted`, next: { ...world, wish, left: spent }, isFair: false });
  }
  if (left.faults > 0) {
    const spent = { ...left, faults: left.faults - 1 };
    moves.push({
      label: 'labels of the object change',
      next: { ...world, object: { ...world.object }, left: spent },
      isFair: false,
    });
  }
  return moves;
}

function keyOf(world: CiliumWorld): string {
  const { object, nec, cloud, agent, memory, writes, pods, wish, now, left } = world;
  const most = Math.max(...Object.values(SETTINGS));
  const ageOf = (ms: number | undefined) => (ms === undefined ? -1 : Math.min(now - ms, most));
  const { copy } = agent;
  return JSON.stringify([
    contentOf(object),
    [...nec].sort().map(([ip, one]) => [ip, one.isLeaving, one.isOffered]),
    [...cloud].sort(),
    agent.stage,
    copy === undefined ? '' : copy.base === object ? 'current' : [contentOf(copy.base), copy.isOutdated],
    copy === undefined ? [] : [...copy.releases].sort(),
    [...agent.allocated].sort(),
    agent.isDirty,
    [...cloud.keys()].map((ip) => ageOf(memory.usedMs.get(ip))),
    [...memory.entries].sort().map(([ip, { state, sinceMs }]) => [ip, state, ageOf(sinceMs)]),
    memory.used === undefined ? '' : [...memory.used].sort().map(([ip, { owner }]) => [ip, owner]),
    memory.aliveMs === undefined,
    writes === undefined
      ? ''
      : [
          writes.pool === undefined ? '' : [...writes.pool].sort(),
          writes.status === undefined ? '' : [[...writes.status.releases].sort(), writes.status.error],
          writes.offers === undefined ? '' : [...writes.offers].sort(),
        ],
    [...pods].sort().map(([name, { ip, isKnown, age }]) => [name, ip, isKnown, age]),
    wish,
    left.wishes,
  ]);
}

function faultOf({ object, nec, cloud, pods }: CiliumWorld): string | undefined {
  const owners = new Map<string, string>();
  for (const [name, { ip }] of pods) {
    const other = owners.get(ip);
    if (other !== undefined) return `${other} and ${name} have ${ip}`;
    owners.set(ip, name);
    if (cloud.get(ip) !== 'here') return `${ip} was freed, and ${name} has it`;
    if (nec.get(ip)?.isLeaving !== false) return `${ip} is unassigned next, and ${name} has it`;
    if (!object.pool.has(ip)) return `${ip} has left the pool, and ${name} has it`;
  }
  const twice = [...cloud].find(([ip, at]) => at === 'elsewhere' && object.pool.has(ip))?.[0];
  return twice === undefined ? undefined : `${twice} is in the pools of two nodes`;
}

function unfinishedIn(world: CiliumWorld): string | undefined {
  const { object, nec, cloud, memory, pods } = world;
  const [entry] = object.releases;
  if (entry !== undefined) return `the entry ${entry.join(' ')} stays`;
  for (const ip of cloud.keys()) {
    const seen = nec.get(ip);
    if (seen?.isOffered === true || seen?.isLeaving === true) return `${ip} stays offered`;
    if ((cloud.get(ip) === 'here') !== (seen !== undefined)) return `the NodeENIConfig is wrong about ${ip}`;
    if (object.pool.has(ip) !== (seen !== undefined)) return `the pool is wrong about ${ip}`;
    const owner = object.pool.get(ip) ?? '';
    if (owner !== '' && !pods.has(owner)) return `${ip} stays pinned to ${owner}`;
  }
  // Another ipamd than the one that saw the agent write marks nothing until it writes again.
  if (spareOf(world) > 0 && memory.aliveMs !== undefined) return 'a spare address is neither released nor in use';
  if (object.error > 0) return 'an error stays';
  return undefined;
}

/** A state in which an address has been released and the agent has taken note: to prove that the model gets there. */
export function isReleased({ object, cloud }: CiliumWorld): boolean {
  return [...cloud].some(([ip, at]) => at !== 'here' && !object.releases.has(ip) && !object.pool.has(ip));
}

/** Reports whether an agent has given up the address of a live Pod. */
export function isForgotten({ object, pods }: CiliumWorld): boolean {
  return [...pods.values()].some(({ ip }) => object.releases.get(ip) === RELEASE_STATE.ready);
}
