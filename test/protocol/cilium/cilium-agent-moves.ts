import { RELEASE_STATE, type ReleaseState } from '../../../crd/cilium-node.ts';
import type { Move } from '../explore.ts';
import {
  type AgentState,
  type CiliumObject,
  type CiliumWorld,
  type LivePod,
  PODS,
  ROUTER,
  withEntry,
} from './cilium-world.ts';

const DOWN: AgentState = { stage: 'down', copy: undefined, allocated: new Map(), isDirty: false };

/** What Cilium's agent may do next, and its Pods. @see test/support/cilium-agent.ts */
export function agentMoves(world: CiliumWorld): readonly Move<CiliumWorld>[] {
  return [...lifeMoves(world), ...copyMoves(world), ...PODS.flatMap((pod) => podMoves(world, pod))];
}

function lifeMoves(world: CiliumWorld): readonly Move<CiliumWorld>[] {
  const { agent, object, left } = world;
  const put = (change: Partial<AgentState>): CiliumWorld => ({ ...world, agent: { ...agent, ...change } });
  const crash: readonly Move<CiliumWorld>[] =
    agent.stage === 'down' || left.crashes === 0
      ? []
      : [
          {
            label: 'agent: dies',
            next: { ...world, agent: DOWN, left: { ...left, crashes: left.crashes - 1 } },
            isFair: false,
          },
        ];
  switch (agent.stage) {
    case 'down': {
      const started: AgentState = { ...DOWN, stage: 'starting' };
      return [{ label: 'agent: starts', next: { ...world, agent: see(started, object, true) }, isFair: true }];
    }
    case 'starting':
      return [...crash, { label: 'agent: has its pool', next: put({ stage: 'unrestored' }), isFair: true }];
    case 'unrestored': {
      const restored = [...world.pods].filter(([, { ip }]) => isAllocatable(agent, ip));
      const allocated = new Map(restored.map(([pod, { ip }]) => [ip, pod]));
      return [
        ...crash,
        {
          label: `agent: restores ${restored.length} of ${world.pods.size} Pods`,
          next: put({ stage: 'running', allocated, isDirty: true }),
          isFair: true,
        },
      ];
    }
    default:
      return crash;
  }
}

/** It sees the object, and writes its status. */
function copyMoves(world: CiliumWorld): readonly Move<CiliumWorld>[] {
  const { agent, object, left } = world;
  const { copy } = agent;
  if (copy === undefined) return [];
  const moves: Move<CiliumWorld>[] = [];
  const isCurrent = copy.base === object;
  if (!isCurrent) {
    moves.push({
      label: 'agent: sees the object',
      next: { ...world, agent: see(agent, object, copy.isOutdated) },
      isFair: true,
    });
  }
  if (agent.isDirty && isCurrent) {
    const own: readonly (readonly [string, string])[] = agent.stage === 'running' ? [[ROUTER, 'router']] : [];
    const written: CiliumObject = {
      ...copy.base,
      pool: object.pool,
      used: new Map([...agent.allocated, ...own]),
      releases: copy.releases,
    };
    const done = { ...world, object: written };
    moves.push({
      label: 'agent: writes its status',
      next: { ...done, agent: { ...agent, isDirty: false } },
      isFair: true,
    });
    if (left.faults > 0) {
      moves.push({
        label: 'agent: writes its status and does not hear of it',
        next: { ...done, left: { ...left, faults: left.faults - 1 } },
        isFair: false,
      });
    }
  }
  return moves;
}

/** The address of a Pod comes, becomes known, and goes. */
function podMoves(world: CiliumWorld, name: string): readonly Move<CiliumWorld>[] {
  const { agent, left } = world;
  const pod = world.pods.get(name);
  const put = (next: LivePod | undefined, change: Partial<CiliumWorld> = {}): CiliumWorld => ({
    ...world,
    ...change,
    pods: withEntry(world.pods, name, next),
  });
  if (pod === undefined) {
    if (agent.stage !== 'running' || left.pods === 0) return [];
    return allocatable(agent, name).map((ip) => ({
      label: `agent: gives ${ip} to ${name}`,
      next: put(
        { ip, isKnown: false, age: 0 },
        {
          agent: { ...agent, allocated: withEntry(agent.allocated, ip, name), isDirty: true },
          left: { ...left, pods: left.pods - 1 },
        },
      ),
      isFair: false,
    }));
  }
  const isHeld = agent.allocated.get(pod.ip) === name;
  const released = { ...agent, allocated: withEntry(agent.allocated, pod.ip, undefined), isDirty: true };
  const known: readonly Move<CiliumWorld>[] = pod.isKnown
    ? []
    : [{ label: `API server: ${name} has ${pod.ip}`, next: put({ ...pod, isKnown: true, age: 0 }), isFair: true }];
  return [...known, { label: `${name} ends`, next: put(undefined, isHeld ? { agent: released } : {}), isFair: false }];
}

function allocatable(agent: AgentState, pod: string): readonly string[] {
  const pool = [...(agent.copy?.base.pool ?? [])];
  const pinned = pool.filter(([, owner]) => owner === pod).map(([ip]) => ip);
  if (pinned.length > 0) return pinned.slice(0, 1);
  return pool
    .filter(([ip, owner]) => owner === '' && !agent.allocated.has(ip) && isAllocatable(agent, ip))
    .map(([ip]) => ip);
}

function isAllocatable({ copy }: AgentState, ip: string): boolean {
  const state = copy?.releases.get(ip);
  return copy?.base.pool.has(ip) === true && (state === undefined || state === RELEASE_STATE.refused);
}

/** It takes in the object. If only metadata have changed, it forgets its answers, and does not look at the marks. */
function see(agent: AgentState, object: CiliumObject, isOther: boolean): AgentState {
  if (!isOther) return { ...agent, copy: { base: object, releases: object.releases, isOutdated: false } };
  const releases = new Map<string, ReleaseState>();
  for (const [ip, state] of object.releases) {
    const answer = answerOf(agent, object, ip, state);
    if (answer !== undefined) releases.set(ip, answer);
  }
  const isAnswered = [...object.releases].some(([ip, state]) => releases.get(ip) !== state);
  return { ...agent, copy: { base: object, releases, isOutdated: false }, isDirty: agent.isDirty || isAnswered };
}

/** Notes that the agent's copy is of another content than the object, after one step. */
export function noteOutdated(before: CiliumWorld, after: CiliumWorld): CiliumWorld {
  const { agent, object } = after;
  if (agent.copy === undefined || agent.copy.base === object || before.object === object) return after;
  if (agent.copy.isOutdated || contentOf(before.object) === contentOf(object)) return after;
  return { ...after, agent: { ...agent, copy: { ...agent.copy, isOutdated: true } } };
}

function answerOf(
  agent: AgentState,
  { pool }: CiliumObject,
  ip: string,
  state: ReleaseState,
): ReleaseState | undefined {
  if (state === RELEASE_STATE.released && !pool.has(ip)) return undefined;
  if (state !== RELEASE_STATE.marked) return state;
  if (!pool.has(ip)) return RELEASE_STATE.refused;
  if (agent.stage === 'starting') return state;
  return agent.allocated.has(ip) ? RELEASE_STATE.refused : RELEASE_STATE.ready;
}

/** Renders all that the agent compares. */
export function contentOf({ pool, used, releases, error }: CiliumObject): string {
  return JSON.stringify([[...pool].sort(), [...used].sort(), [...releases].sort(), error]);
}
