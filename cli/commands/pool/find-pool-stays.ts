import type { AddressView, PoolEniView, PoolReading, PoolView } from './pool-view.ts';
import { type PoolSituation, type Stay, type StayAddress, whyEniStays } from './why-eni-stays.ts';

/** Lists for each ENI of a node why it is not returned, as its agent, or the journal alone, shows it. */
export function findPoolStays({ view, supplySource }: PoolReading): ReadonlyMap<string, readonly Stay[]> {
  if (view.role === 'uplinks') return new Map(view.enis.map(({ eniId }) => [eniId, [OF_OTHERS]]));
  const family = view.addresses.some((address) => address.family === 4) ? 4 : 6;
  const pool = poolOf(view, family);
  const node = {
    ...(view.source === 'journal' ? { whyNoAgent: view.whyNoAgent ?? 'no agent was asked' } : {}),
    isSupplyFile: supplySource === 'file',
    // The journal has no problem but that it has no supply; then it has no ENI either.
    supplyProblem: view.source === 'journal' ? '' : view.supplyProblem,
    waitingAdds: view.waiting ?? [],
  };
  return new Map(
    view.enis.map((eni) => {
      const own = view.addresses.filter(({ eniId }) => eniId === eni.eniId);
      const stays = whyEniStays({
        kind: 'shared',
        state: eni.attached ? 'attached' : 'not-attached',
        isDraining: eni.draining,
        addresses: own.filter((address) => address.family === family || isHeld(address)).map(stayAddressOf),
        pool,
        node,
      });
      return [eni.eniId, stays];
    }),
  );
}

const OF_OTHERS: Stay = {
  reason: 'uplinks',
  text: 'another program gives its addresses to Pods (--role=uplinks): ipamd takes back what that lets go',
};

/** Counts what the agent counts: addresses of one family that are not static, and free ones only on ENIs that serve. */
function poolOf({ addresses, enis, demand, warm }: PoolView, family: AddressView['family']): PoolSituation {
  const serving = new Set(enis.filter(isServing).map(({ eniId }) => eniId));
  const counted = addresses.filter((address) => address.family === family && address.keptFor === undefined);
  const used = counted.filter(isHeld).length;
  const free = counted.filter(({ use, eniId }) => (use === 'free' || use === 'unready') && serving.has(eniId)).length;
  const offered = counted.filter(({ use, eniId }) => use === 'offered' && serving.has(eniId)).length;
  return { have: used + free, offered, used, demand, ...(warm === undefined ? {} : { warm }) };
}

function isServing({ attached, draining }: PoolEniView): boolean {
  return attached && !draining;
}

/** Reports whether an address is in use, cools down, or is still registered with a load balancer. */
function isHeld({ use }: AddressView): boolean {
  return use === 'in-use' || use === 'cooling' || use === 'registered';
}

function stayAddressOf({ use, owner, keptFor, coolRemainingMs }: AddressView): StayAddress {
  if (use === 'in-use') return { use, owner: owner === undefined ? 'an unknown Pod' : podText(owner) };
  if (use === 'releasing') return { use };
  if (keptFor !== undefined) return { use: 'static', owner: keptFor.pods };
  if (use === 'cooling') return { use, ...(coolRemainingMs === undefined ? {} : { coolRemainingMs }) };
  return { use: use === 'offered' || use === 'registered' ? use : 'idle' };
}

function podText({ podNamespace, podName, containerId }: NonNullable<AddressView['owner']>): string {
  return podName === '' ? containerId.slice(0, 12) : `${podNamespace}/${podName}`;
}
