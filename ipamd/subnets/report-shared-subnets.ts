import { LastReports } from '../../kube/reporter.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeEvents } from '../supply/node-deps.ts';
import { decideSharedSubnets, type SharedFacts, type SharedSubnet } from './decide-shared-subnets.ts';

/** Dependencies of reporting. */
type SharedSubnetsDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: NodeEvents;
  /** The ConfigMap with the subnets, on which the event is. */
  readonly configMap: { readonly namespace: string; readonly name: string };
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
export async function reportSharedSubnets(deps: SharedSubnetsDeps, signal: AbortSignal): Promise<void> {
  const { clock, facts } = deps;
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
      for (const subnet of last.note('', settled, ({ subnetId }) => subnetId) ?? []) report(deps, subnet);
    }
    await clock.sleep(CHECK_INTERVAL_MS, signal).catch(() => {});
  }
}

function report({ events, log, configMap }: SharedSubnetsDeps, { subnetId, foreignIps }: SharedSubnet): void {
  const message = `${subnetId} has ${foreignIps} addresses that are not those of this cluster's ENIs: machines, load balancers or other clusters use it too, and take what Pods may need; give ENIs of Pods a subnet of their own`;
  log.warn('a subnet of the ConfigMap is shared', { subnetId, foreignIps });
  const involved = { apiVersion: 'v1', kind: 'ConfigMap', ...configMap };
  events.record({ involved, type: 'Warning', reason: 'SubnetShared', message });
}
