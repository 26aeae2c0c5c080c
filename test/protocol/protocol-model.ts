import { baselineOf } from '../../ipamd/decide/with-confirmed-offers.ts';
import { agentMoves } from './agent-side.ts';
import { freeIps } from './cloud-truth.ts';
import type { Model, Move } from './explore.ts';
import { faultOfWorld, unfinishedIn } from './invariants.ts';
import { ipamdMoves } from './ipamd-side.ts';
import { type Budget, emptyWorld, type Setting, type World, withNec } from './world.ts';
import { keyOfWorld } from './world-key.ts';

/** Puts agent, ipamd, cloud, API server and what may befall them together. */
export function protocolModel(setting: Setting): Model<World> {
  return {
    initial: emptyWorld(setting),
    keyOf: keyOfWorld,
    spentOf: ({ left }) => spentOf(setting.budget, left),
    movesOf: (world) => [
      ...agentMoves(world, setting),
      ...ipamdMoves(world, setting),
      ...tenantMoves(world, setting),
      ...restoreMoves(world, setting),
    ],
    faultOf: (world) => faultOfWorld(world, setting),
    unfinished: (world) => (setting.isUseAllThatCounts === true ? undefined : unfinishedIn(world, setting)),
  };
}

function spentOf(of: Budget, left: Budget): number {
  const fields = [
    of.crashes - left.crashes,
    of.faults - left.faults,
    of.restores - left.restores,
    of.tenants - left.tenants,
  ];
  return fields.reduce((sum, field, i) => sum + (field << (4 * i)), 0);
}

/** Another node of the VPC takes an address that nobody has: from then on its Pods use it. */
function tenantMoves(world: World, { ips }: Setting): readonly Move<World>[] {
  const { cloud, left } = world;
  if (left.tenants === 0) return [];
  return freeIps(cloud, ips).map((ip) => ({
    label: `cloud: gives ${ip} to another node`,
    next: {
      ...world,
      cloud: { ...cloud, foreign: [...cloud.foreign, ip].sort() },
      left: { ...left, tenants: left.tenants - 1 },
    },
    isFair: false,
  }));
}

/**
 * A backup of etcd is made at any time, and restored at any later one. The restored store goes on with higher versions
 * than it ever had (`--bump-revision`), so that no write made on a version from before the restore fits. It takes longer
 * than a call to the cloud: the API server stands still meanwhile, and what was sent before has arrived or never will.
 */
function restoreMoves(world: World, { restoreFindsAgentInformed }: Setting): readonly Move<World>[] {
  const { nec, backup, left, calls } = world;
  if (left.restores === 0 || left.crashes === 0) return [];
  if (backup === undefined) {
    return [{ label: 'etcd: a backup is made', next: { ...world, backup: nec }, isFair: false }];
  }
  if (backup === nec || calls.some(({ answer }) => answer === undefined)) return [];
  if (restoreFindsAgentInformed === true && world.agent.pool.epoch !== (nec.status.supplyEpoch ?? -1)) return [];
  const { backup: _used, ...rest } = world;
  const less = { ...left, restores: left.restores - 1, crashes: left.crashes - 1 };
  const { listings } = world.ipamd.baseline;
  const ipamd = { ...world.ipamd, baseline: baselineOf(backup.spec, backup.status, listings + 1) };
  const next = { ...withNec(rest, { ...backup }, true), ipamd, left: less, wasRestored: true };
  return [{ label: 'CRASH: etcd is restored from the backup', next, isFair: false }];
}
