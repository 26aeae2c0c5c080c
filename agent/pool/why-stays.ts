import type { WarmTargets } from '../journal/supply.ts';
import { countedFamily, type demandInUnits, isFree, type OutsideDemand } from './demand.ts';
import type { PoolState } from './pool-state.ts';

/** Why free addresses of an ENI are not offered: a code for programs (docs/cli.md), and one sentence for people. */
type Stay = { readonly reason: string; readonly text: string };

/** What was decided about the whole pool, and from what. */
export type DecidedPool = {
  readonly units: ReturnType<typeof demandInUnits>;
  readonly warm: WarmTargets;
  readonly outside: Pick<OutsideDemand, 'waiting' | 'floor'>;
  /** What is wrong with the supply; '' when nothing is. */
  readonly supplyProblem: string;
  /** Absent: the supply has no object to write offers to. */
  readonly release: { readonly isQuick: boolean; readonly everyMs: number } | undefined;
};

/**
 * Says why free addresses of an ENI are not offered, as `demandInUnits` decided: none is free, nothing can be offered, the
 * node wants them, or they are surplus and wait for their turn. Those of an ENI that drains are offered at once.
 */
export function whyStays(state: PoolState, eniId: string, decided: DecidedPool): readonly Stay[] {
  const { units, release, supplyProblem } = decided;
  if (state.enis.get(eniId)?.serves !== true) return [];
  const family = countedFamily(state);
  const free = [...state.addresses.values()].filter(
    (one) => one.eniId === eniId && one.family === family && one.claim === undefined && isFree(state, one),
  );
  if (free.length === 0) return [];
  if (release === undefined) {
    return [{ reason: 'supply-file', text: 'supply comes from a file: the agent offers nothing' }];
  }
  if (supplyProblem !== '') {
    return [{ reason: 'supply-problem', text: `the agent reports of its supply: ${supplyProblem}` }];
  }
  const surplus = new Set(units.surplus.flat().map(({ ip }) => ip));
  const isWanted = free.some(({ ip }) => !surplus.has(ip));
  const isGoing = free.some(({ ip }) => surplus.has(ip));
  return [...(isWanted ? whyWanted(decided) : []), ...(isGoing ? [paceOf(units.surplus.length, release)] : [])];
}

function whyWanted({ units: { used, bound, desired }, warm, outside }: DecidedPool): readonly Stay[] {
  const { waiting, floor } = outside;
  const range = warm.min === warm.max ? `${warm.min}` : `${warm.min} to ${warm.max}`;
  const stays: readonly Stay[] = [
    ...(waiting === 0 ? [] : [{ reason: 'waiting-adds', text: `Pods that wait for an address: ${waiting}` }]),
    ...(floor <= used + waiting
      ? []
      : [{ reason: 'minimum', text: `desired-route-eni-pod-num keeps at least ${floor} addresses on the node` }]),
    ...(warm.max === 0 ? [] : [{ reason: 'warm', text: `the node keeps ${range} spare (warm target)` }]),
  ];
  if (stays.length > 0) return stays;
  return [{ reason: 'demand', text: `addresses that the node asks for: ${desired}, that it has: ${bound}` }];
}

function paceOf(count: number, { isQuick, everyMs }: NonNullable<DecidedPool['release']>): Stay {
  const rate = isQuick ? 'all' : 'one, from the emptiest ENI first,';
  return {
    reason: 'pace',
    text: `the node has ${count} more than it asks for: the agent offers ${rate} every ${Math.round(everyMs / 1_000)} s`,
  };
}
