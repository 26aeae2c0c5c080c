import type { TkeServiceConfig } from '../../crd/tke-service-config.ts';

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
  const planned = listeners.map(
    (listener) => present?.find((entry) => isOf(listener, entry)) ?? defaultEntry(listener),
  );
  const isSame =
    present !== undefined && present.length === planned.length && planned.every((one) => present.includes(one));
  return isSame ? undefined : planned;
}

function isOf({ protocol, port }: ListenerPlace, entry: L4Listener): boolean {
  return entry.protocol === protocol && entry.port === port;
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
