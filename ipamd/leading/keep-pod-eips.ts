import type { Informer } from '../../kube/informer.ts';
import type { Term } from '../../kube/leader-election.ts';
import type { EipClaimEntry } from '../eip/claim-book.ts';
import { keepEips } from '../eip/keep-eips.ts';
import { keepMasqConfig } from '../eip/keep-masq-config.ts';
import { openEipClaims, openMasqConfig } from '../open-informers.ts';
import type { LeadDeps, TermParts } from './lead.ts';

const SECOND_MS = 1_000;

/** Keeps the EIPs of Pods until aborted. Never rejects but with a fault of ours. */
export async function keepPodEips(
  deps: LeadDeps,
  { queues }: TermParts,
  term: Term,
  signal: AbortSignal,
): Promise<void> {
  const { config, informers, breakers, events } = deps;
  const { clock, log, ids, kube, cloud, metrics } = deps.runtime;
  const claims = openEipClaims(deps.informerDeps);
  const requestTimeoutSeconds = Math.ceil(config.cloudTimeoutMs / SECOND_MS);
  const following = claims.start(signal);
  const kept = keepEips(
    {
      cloud,
      kube,
      clock,
      log,
      ids,
      events,
      breakers,
      leader: { epoch: term.epoch, clusterId: config.clusterId, requestTimeoutSeconds, term: { ...term, signal } },
      pods: informers.pods,
      necs: informers.necs,
      claims,
      queue: queues.eips,
      claimExpiredMs: config.claimExpiredDurationMs,
      audit: { ...config, isDryRun: config.orphanDryRun },
      observer: metrics.controller,
    },
    signal,
  );
  const masq = config.eipIpMasq ? keepMasq(deps, claims, signal) : undefined;
  await Promise.all(
    [kept, masq].map((work) =>
      work?.catch((error: unknown) => {
        if (!signal.aborted) throw error;
      }),
    ),
  );
  await following;
}

async function keepMasq(deps: LeadDeps, claims: Informer<EipClaimEntry>, signal: AbortSignal): Promise<void> {
  const configMaps = openMasqConfig(deps.informerDeps);
  const following = configMaps.start(signal);
  const { kube, clock, log } = deps.runtime;
  await keepMasqConfig({ kube, configMaps, claims, clock, log, events: deps.events }, signal);
  await following;
}
