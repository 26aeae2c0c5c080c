import { LastReports } from '../../kube/reporter.ts';
import type { Term } from '../calls/term.ts';
import { involvedConfigMap } from '../config/involved-config-map.ts';
import type { IpamdConfig } from '../config/options.ts';
import { decideSharedSubnets, type SharedFacts, type SharedSubnet } from './decide-shared-subnets.ts';

/** What is reported, and with what. */
type SharedSubnetsTerm = Pick<Term, 'clock' | 'log' | 'events'> & {
  readonly config: Pick<IpamdConfig, 'namespace' | 'configMap'>;
  /** Returns the present facts; undefined while nothing is known, and where it does not matter. */
  readonly facts: () => SharedFacts | undefined;
};

const CHECK_INTERVAL_MS = 30_000;
/** So long a subnet must have been shared: an address that comes or goes is counted by one side before the other. */
const SETTLED_MS = 300_000;

/**
 * Warns of each subnet of the configuration that others use too, once for as long as that lasts, until aborted. Pods run
 * short of addresses there earlier than the nodes' numbers say.
 */
export async function reportSharedSubnets(term: SharedSubnetsTerm, signal: AbortSignal): Promise<void> {
  const { clock, facts } = term;
  const sinceMs = new Map<string, number>();
  const last = new LastReports();
  while (!signal.aborted) {
    const known = facts();
    if (known !== undefined) {
      const shared = decideSharedSubnets(known);
      const ids = new Set(shared.map(({ subnetId }) => subnetId));
      for (const id of sinceMs.keys()) if (!ids.has(id)) sinceMs.delete(id);
      const settled = shared.filter(({ subnetId }) => {
        const firstMs = sinceMs.get(subnetId) ?? clock.monotonicMs();
        sinceMs.set(subnetId, firstMs);
        return clock.monotonicMs() - firstMs >= SETTLED_MS;
      });
      for (const subnet of last.note('', settled, ({ subnetId }) => subnetId) ?? []) report(term, subnet);
    }
    await clock.sleep(CHECK_INTERVAL_MS, signal).catch(() => {});
  }
}

function report({ config, events, log }: SharedSubnetsTerm, { subnetId, foreignIps }: SharedSubnet): void {
  const message = `${subnetId} has ${foreignIps} addresses that are not those of this cluster's ENIs: machines, load balancers or other clusters use it too, and take what Pods may need; give ENIs of Pods a subnet of their own`;
  log.warn('a subnet of the ConfigMap is shared', { subnetId, foreignIps });
  events.record({ involved: involvedConfigMap(config), type: 'Warning', reason: 'SubnetShared', message });
}
