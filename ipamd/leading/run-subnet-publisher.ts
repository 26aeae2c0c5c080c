import type { PublishedFacts } from '../subnets/decide-published.ts';
import { readSubnetLabel } from '../subnets/decide-subnet-config.ts';
import { publishSubnets } from '../subnets/publish-subnets.ts';
import { reportSharedSubnets } from '../subnets/report-shared-subnets.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';

/**
 * Publishes the free addresses of subnets for the scheduler extender, and warns of subnets that others use too, until aborted. Rejects only with a fault of
 * ipamd.
 */
export async function runSubnetPublisher(
  { config, informers, runtime, events }: LeaderDeps,
  { subnets }: TermComponents,
  signal: AbortSignal,
): Promise<void> {
  const { kube, clock, log } = runtime;
  const { necs, nodes } = informers;
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
  const onConfigRead = (listener: () => void): (() => void) =>
    subnets.subscribe(({ isConfigRead }) => {
      if (isConfigRead) listener();
    });
  await Promise.all([
    publishSubnets({ kube, clock, log, namespace: config.namespace, facts, onConfigRead }, signal),
    reportSharedSubnets(
      {
        clock,
        log,
        events,
        configMap: { namespace: config.namespace, name: config.configMap },
        facts: () => (hasPodCidrs() ? facts() : undefined),
      },
      signal,
    ),
  ]);
}
