import type { TkeServiceConfig } from '../../crd/tke-service-config.ts';
import { firstBy } from './rule-entry.ts';

type Spec = NonNullable<TkeServiceConfig['spec']>;
type L4Listener = NonNullable<NonNullable<Spec['loadBalancer']>['l4Listeners']>[number];

/** A listener that has an entry in the configuration. */
type ListenerPlace = { readonly protocol: 'TCP' | 'UDP'; readonly port: number };

/**
 * Plans the entries of a configuration that is made for a Service: one for each listener, in the order of the listeners. An
 * entry that is there stays as people have changed it; one whose listener is gone goes. @returns undefined when nothing changes
 */
export function planAutoListeners(
  listeners: readonly ListenerPlace[],
  present: readonly L4Listener[] | undefined,
): readonly L4Listener[] | undefined {
  const presentOf = firstBy(present ?? [], placeOf);
  const planned = listeners.map((listener) => presentOf.get(placeOf(listener)) ?? defaultEntry(listener));
  const known = new Set(present);
  const isSame = present?.length === planned.length && planned.every((one) => known.has(one));
  return isSame ? undefined : planned;
}

function placeOf({ protocol, port }: ListenerPlace): string {
  return `${protocol}/${port}`;
}

/** What the cloud does without a configuration, written down so that people can change it. */
function defaultEntry({ protocol, port }: ListenerPlace): L4Listener {
  return {
    protocol,
    port,
    session: { enable: false, sessionExpireTime: 30 },
    healthCheck:
      protocol === 'UDP'
        ? { enable: false }
        : { enable: true, intervalTime: 5, healthNum: 3, unHealthNum: 3, timeout: 2 },
    scheduler: 'WRR',
  };
}
