import { EIP_CLAIM_KIND } from '../../crd/eip-claim.ts';
import type { Term } from '../../kube/election/term.ts';
import type { Informer } from '../../kube/informer.ts';
import type { PodFacts } from '../cache/pod-facts.ts';
import type { EipClaimEntry } from '../eip/eip-claim-cache.ts';
import { runEips } from '../eip/run-eips.ts';
import { syncMasqConfig } from '../eip/sync-masq-config.ts';
import { findWorkload } from '../static/find-workload.ts';
import type { LeaderDeps, TermComponents } from './leader-deps.ts';
import { openEipClaims, openMasqConfig, openStaticInformers } from './open-informers.ts';

const SECOND_MS = 1_000;

/** Runs the EIP controller until aborted. Rejects only with a fault of ipamd. */
export async function runPodEips(
  deps: LeaderDeps,
  { queues }: TermComponents,
  term: Term,
  signal: AbortSignal,
): Promise<void> {
  const { config, informers, breakers, events } = deps;
  const { clock, log, ids, kube, cloud, metrics } = deps.runtime;
  const claims = openEipClaims(deps.informerDeps);
  const requestTimeoutSeconds = Math.ceil(config.cloudTimeoutMs / SECOND_MS);
  const { deployments } = openStaticInformers(deps.informerDeps, config);
  const following = [claims, deployments].map((informer) => informer?.start(signal));
  const controller = runEips(
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
      ...(deployments === undefined ? {} : { workloadOf: (pod: PodFacts) => findWorkload(pod, deployments.values()) }),
      isRebuilding: () => deps.definitions.isRebuilding,
      isOwnDeletion: (uid, by) => deps.definitions.isOwnDeletion(EIP_CLAIM_KIND, uid, by),
      claimExpiredMs: config.claimExpiredDurationMs,
      settings: config,
      observer: metrics.controller,
    },
    signal,
  );
  const masq = config.eipIpMasq ? runMasqConfig(deps, claims, signal) : undefined;
  await Promise.all(
    [controller, masq].map((work) =>
      work?.catch((error: unknown) => {
        if (!signal.aborted) throw error;
      }),
    ),
  );
  await Promise.all(following);
}

async function runMasqConfig(deps: LeaderDeps, claims: Informer<EipClaimEntry>, signal: AbortSignal): Promise<void> {
  const configMaps = openMasqConfig(deps.informerDeps);
  const following = configMaps.start(signal);
  const { kube, clock, log } = deps.runtime;
  await syncMasqConfig({ kube, configMaps, claims, clock, log, events: deps.events }, signal);
  await following;
}
