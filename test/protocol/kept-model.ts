import { leaseStatic } from '../../agent/pool/lease-static.ts';
import { release } from '../../agent/pool/pool.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { baselineOf } from '../../ipamd/decide/with-confirmed-offers.ts';
import { agentMoves, leaseOf } from './agent-side.ts';
import type { Model, Move } from './explore.ts';
import { nodeMoves } from './ipamd-side.ts';
import { faultOfKept, unfinishedInKept } from './kept-invariants.ts';
import { NAMESPACE, reservedOf, withWishes } from './kept-wishes.ts';
import {
  emptyKeptWorld,
  type KeptClaim,
  type KeptNode,
  type KeptSetting,
  type KeptWorld,
  nodeOf,
  nodeSettingOf,
  nodeWorldOf,
  placesOf,
  sandboxOf,
  withNodeWorld,
} from './kept-world.ts';
import { tokensOf } from './namer.ts';
import type { Call, Setting, World } from './world.ts';
import { keyOfWorld } from './world-key.ts';

/** Puts two nodes, one ipamd, the cloud, the names and what may befall them together. */
export function keptModel(setting: KeptSetting): Model<KeptWorld> {
  return {
    initial: emptyKeptWorld(setting),
    keyOf: keyOfKept,
    spentOf: ({ left }) => {
      const { crashes, faults } = setting.budget;
      return crashes - left.crashes + ((faults - left.faults) << 4);
    },
    movesOf: (world) => [
      ...world.nodes.flatMap((_, node) => movesOfNode(world, setting, node)),
      ...world.claims.flatMap((_, claim) => movesOfClaim(world, claim)),
      ...crash(world),
    ],
    faultOf: faultOfKept,
    unfinished: unfinishedInKept,
  };
}

function movesOfNode(world: KeptWorld, setting: KeptSetting, node: number): readonly Move<KeptWorld>[] {
  const own = nodeWorldOf(world, node);
  const also = withWishes(world, node, setting);
  const reserved = setting.planted === 'forgets-reserved' ? {} : { reserved: reservedOf(world) };
  const nodeSetting: Setting = { ...nodeSettingOf(setting, node), also, ...reserved };
  const moves = [...agentMoves(own, nodeSetting), ...nodeMoves(planted(own, world, setting, node), nodeSetting)];
  const lifted = moves.map(({ label, next, isFair }): Move<KeptWorld> => {
    return { label: `node${node + 1}: ${label}`, next: withNodeWorld(world, node, next), isFair };
  });
  return [...lifted, ...endSandboxes(world, node)];
}

/** Puts an address back that was let go of, as if nobody could be moving it. */
function planted(own: World, { claims }: KeptWorld, { planted: fault }: KeptSetting, node: number): World {
  if (fault !== 'serves-what-was-let-go') return own;
  const here = new Set(claims.flatMap(({ name, pod }) => (pod?.node === node ? [name] : [])));
  const { status } = own.nec;
  const eniInfos = (status.eniInfos ?? []).map((eni) => ({
    ...eni,
    addresses: (eni.addresses ?? []).map((address) =>
      address.state === 'Releasing' && here.has(address.claim?.name ?? '')
        ? { ...address, state: 'Assigned' as const, assignmentID: own.nextId.toString(16).padStart(16, '0') }
        : address,
    ),
  }));
  if (JSON.stringify(eniInfos) === JSON.stringify(status.eniInfos ?? [])) return own;
  const next: NodeEniConfigStatus = { ...status, eniInfos, supplyEpoch: (status.supplyEpoch ?? 0) + 1 };
  return { ...own, nextId: own.nextId + 1, nec: { ...own.nec, status: next } };
}

/** A Pod of the name comes, gets its address, and goes; a sandbox without its Pod is taken down sooner or later. */
function movesOfClaim(world: KeptWorld, index: number): readonly Move<KeptWorld>[] {
  const claim = world.claims[index];
  if (claim === undefined) return [];
  const { name, pod, pods } = claim;
  const put = (change: Partial<KeptClaim>, rest: KeptWorld = world): KeptWorld => ({
    ...rest,
    claims: rest.claims.map((one, i) => (i === index ? { ...claim, ...change } : one)),
  });
  if (pod === undefined) {
    if (world.left.pods === 0) return [];
    const rest = { ...world, left: { ...world.left, pods: world.left.pods - 1 } };
    return world.nodes.map((_, node) => ({
      label: `${name}: its Pod comes to node${node + 1}`,
      next: put({ pod: { uid: `u${name}${pods + 1}`, node, isRunning: false }, pods: pods + 1 }, rest),
      isFair: false,
    }));
  }
  const gone: Move<KeptWorld> = {
    label: `${name}: its Pod is deleted, and its sandbox may still be there`,
    next: put({ pod: undefined }),
    isFair: false,
  };
  const isLetGo = placesOf(world, name).some(({ address }) => address.state === 'Releasing');
  const givenUp: readonly Move<KeptWorld>[] =
    isLetGo && !claim.isGivenUp && world.left.faults > 0
      ? [
          {
            label: `${name}: nobody fetches its address for long`,
            next: put({ isGivenUp: true }, { ...world, left: { ...world.left, faults: world.left.faults - 1 } }),
            isFair: false,
          },
        ]
      : [];
  const added = pod.isRunning ? undefined : add(world, claim, pod.node, pod.uid);
  const runs: readonly Move<KeptWorld>[] =
    added === undefined
      ? []
      : [
          {
            label: `${name}: ADD gives its address on node${pod.node + 1}`,
            next: put({ pod: { ...pod, isRunning: true } }, added),
            isFair: true,
          },
        ];
  return [...runs, gone, ...givenUp];
}

function add(world: KeptWorld, { name }: KeptClaim, node: number, uid: string): KeptWorld | undefined {
  const { agent } = nodeOf(world, node);
  const key = sandboxOf(uid);
  const { state: pool, result } = leaseStatic(agent.pool, {
    key,
    pod: { namespace: NAMESPACE, name, uid },
    families: [4],
  });
  if (result.kind !== 'leased') return undefined;
  const lease = { ...leaseOf(key, result.addresses), podNamespace: NAMESPACE, podName: name, podUid: uid };
  const leases = new Map(agent.journal.leases).set(key, lease);
  return withAgent(world, node, { ...agent, pool, journal: { ...agent.journal, leases } });
}

function endSandboxes(world: KeptWorld, node: number): readonly Move<KeptWorld>[] {
  const { agent } = nodeOf(world, node);
  const live = new Set(world.claims.flatMap(({ pod }) => (pod === undefined ? [] : [sandboxOf(pod.uid)])));
  return [...agent.journal.leases.keys()]
    .filter((key) => !live.has(key))
    .map((key) => {
      const podKey = `${NAMESPACE}/${agent.journal.leases.get(key)?.podName}`;
      const { state: pool } = release(agent.pool, { key, podKey, nowMs: 0, cooldownMs: 1_000 });
      const leases = new Map(agent.journal.leases);
      leases.delete(key);
      return {
        label: `node${node + 1}: the sandbox ${key} is taken down`,
        next: withAgent(world, node, { ...agent, pool, journal: { ...agent.journal, leases } }),
        isFair: true,
      };
    });
}

function withAgent(world: KeptWorld, node: number, agent: KeptNode['agent']): KeptWorld {
  return { ...world, nodes: world.nodes.map((one, i) => (i === node ? { ...one, agent } : one)) };
}

/** The one leader of both dies. */
function crash(world: KeptWorld): readonly Move<KeptWorld>[] {
  const { left, epoch } = world;
  if (left.crashes === 0) return [];
  const nodes = world.nodes.map(({ nec, agent, calls }): KeptNode => {
    const sent = calls.filter(({ answer }) => answer === undefined).map((call): Call => ({ ...call, isHeard: false }));
    return { nec, agent, baseline: baselineOf(nec.spec, nec.status, epoch + 1), calls: sent };
  });
  const next = { ...world, nodes, epoch: epoch + 1, left: { ...left, crashes: left.crashes - 1 } };
  return [{ label: 'CRASH: ipamd has another leader', next, isFair: false }];
}

/** Each node is named by itself: what is compared is compared within one node, and the cloud is in both names. */
function keyOfKept(world: KeptWorld): Int32Array {
  const names = world.nodes.map((_, node) => Int32Array.from(keyOfWorld(nodeWorldOf(world, node))));
  const claims = world.claims.map(({ name, ip, pod, pods, isGivenUp }) => {
    const live = pod === undefined ? '' : `${pod.uid}@${pod.node}${pod.isRunning}`;
    return `${name} ${ip === undefined ? '' : 'ip'} ${live} ${pods}${isGivenUp}`;
  });
  const parts = [...names, Int32Array.from(tokensOf([...claims, ...world.late].join('|')))];
  const key = new Int32Array(parts.reduce((sum, part) => sum + part.length + 1, 0));
  let end = 0;
  for (const part of parts) {
    key[end] = part.length;
    key.set(part, end + 1);
    end += part.length + 1;
  }
  return key;
}
