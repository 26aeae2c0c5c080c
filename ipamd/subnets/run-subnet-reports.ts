import type { Term } from '../calls/term.ts';
import type { PublishedFacts } from './decide-published.ts';
import { readSubnetLabel } from './decide-subnet-config.ts';
import type { Subnets } from './open-subnets.ts';
import { publishSubnets } from './publish-subnets.ts';
import { reportSharedSubnets } from './report-shared-subnets.ts';

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
  await Promise.all([
    publishSubnets({ ...term, facts }, signal),
    reportSharedSubnets({ ...term, facts: () => (hasPodCidrs() ? facts() : undefined) }, signal),
  ]);
}
