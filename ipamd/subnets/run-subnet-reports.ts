import { LastReports } from '../../kube/reporter.ts';
import { runTogether } from '../../runtime/run-together.ts';
import type { Term } from '../calls/term.ts';
import { involvedConfigMap } from '../config/involved-config-map.ts';
import type { IpamdConfig } from '../config/options.ts';
import { decideSharedSubnets, type PublishedFacts, type SharedFacts, type SharedSubnet } from './decide-published.ts';
import { readSubnetLabel } from './decide-subnet-config.ts';
import type { Subnets } from './open-subnets.ts';
import { publishSubnets } from './publish-subnets.ts';

/**
 * Publishes the free addresses of subnets for the scheduler extender, and warns of subnets that others use too, until
 * aborted. Rejects only with a fault of ipamd.
 */
export async function runSubnetReports(term: Term & { readonly subnets: Subnets }, signal: AbortSignal): Promise<void> {
  const { config, necs, nodes, subnets } = term;
  const onlyNominated = new Set(config.onlyNominatedEniSubnets);
  const facts = (): PublishedFacts | undefined => {
    if (!subnets.isReady) return undefined;
    const decoded = [...necs.values()].flatMap((entry) => entry.decoded ?? []);
    const byLabel = [...nodes.values()].flatMap(({ subnetsLabel }) => readSubnetLabel(subnetsLabel).subnetIds);
    return {
      subnets: subnets.all(),
      source: subnets.source(),
      configured: subnets.config()?.subnetIds ?? [],
      onlyNominated,
      statuses: decoded.flatMap(({ status }) => status ?? []),
      named: new Set([...byLabel, ...decoded.flatMap(({ spec }) => spec?.subnetIDs ?? [])]),
    };
  };
  // Nodes with podCIDRs take most Pods, and few subnets are for the rest.
  const hasPodCidrs = (): boolean => [...nodes.values()].some(({ podCidrs }) => podCidrs.length > 0);
  await runTogether(
    [
      (by) => publishSubnets({ ...term, facts }, by),
      (by) => reportSharedSubnets({ ...term, facts: () => (hasPodCidrs() ? facts() : undefined) }, by),
    ],
    { signal, log: term.log },
  );
}

/** What is reported, and with what. */
type SharedSubnetsTerm = Pick<Term, 'clock' | 'log' | 'events'> & {
  readonly config: Pick<IpamdConfig, 'namespace' | 'configMap'>;
  /** Returns the present facts; undefined while nothing is known, and where it does not matter. */
  readonly facts: () => SharedFacts | undefined;
};

const CHECK_INTERVAL_MS = 30_000;
/** So long a subnet must have been shared: an address that comes or goes is counted by one side before the other. */
const CONFIRM_MS = 300_000;

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
      const confirmed = shared.filter(({ subnetId }) => {
        const firstMs = sinceMs.get(subnetId) ?? clock.monotonicMs();
        sinceMs.set(subnetId, firstMs);
        return clock.monotonicMs() - firstMs >= CONFIRM_MS;
      });
      for (const subnet of last.note('', confirmed, ({ subnetId }) => subnetId) ?? []) report(term, subnet);
    }
    await clock.sleep(CHECK_INTERVAL_MS, signal).catch(() => {});
  }
}

function report({ config, events, log }: SharedSubnetsTerm, { subnetId, foreignIps }: SharedSubnet): void {
  const message = `${subnetId} has ${foreignIps} addresses that are not those of this cluster's ENIs: machines, load balancers or other clusters use it too, and take what Pods may need; give ENIs of Pods a subnet of their own`;
  log.warn('a subnet of the ConfigMap is shared', { subnetId, foreignIps });
  events.record({ involved: involvedConfigMap(config), type: 'Warning', reason: 'SubnetShared', message });
}
