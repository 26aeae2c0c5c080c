import type { PodFacts } from '../cache/pod-facts.ts';
import { readFormerWrites } from '../calls/read-former-writes.ts';
import { numberBlocks } from '../config/cidr-blocks.ts';
import { blockSettingsOf } from '../config/ipamd-config.ts';
import type { IpamdConfig } from '../config/options.ts';
import { runEips } from '../eip/run-eips.ts';
import { syncMasqConfig } from '../eip/sync-masq-config.ts';
import { runVpcEnis } from '../exclusive/run-vpc-enis.ts';
import { keepPodCidrs } from '../pod-cidrs/keep-pod-cidrs.ts';
import { runRecords } from '../records/run-records.ts';
import { runClaimAudit } from '../static/audit-claims.ts';
import { findWorkload } from '../static/find-workload.ts';
import { runClaims } from '../static/run-claims.ts';
import { runReservationSweep } from '../static/sweep-reservations.ts';
import { reportUnservedRequests } from '../static/unserved-requests.ts';
import { runSubnetReports } from '../subnets/run-subnet-reports.ts';
import type { LeaderTerm } from './open-term.ts';
import { runAudit } from './run-audit.ts';
import { runCiliumNodes } from './run-cilium-nodes.ts';
import { runClusterRoutes } from './run-cluster-routes.ts';

/** Work of a term beside that on nodes and their supply. */
type Controller = {
  /** Whether the settings give it something to do; default: they do. */
  readonly isWanted?: (config: IpamdConfig) => boolean;
  /** Runs until aborted. A fault of the cloud or of the API server is reported and tried again, never thrown. */
  readonly run: (term: LeaderTerm, signal: AbortSignal) => Promise<unknown>;
};

/** In the order in which they start. */
export const CONTROLLERS: readonly Controller[] = [
  { run: (term, signal) => Promise.all(Object.values(term.ownInformers).map((one) => one?.start(signal))) },
  { run: ({ subnets }, signal) => subnets.run(signal) },
  { run: ({ instances, instanceIds }, signal) => instances.run(instanceIds, signal) },
  { run: runAudit },
  { run: runPodEips },
  { isWanted: ({ eipIpMasq }) => eipIpMasq, run: runMasqConfig },
  { run: runVpcEnis },
  { run: runSubnetReports },
  { isWanted: ({ grRoutes }) => grRoutes === 'ipamd', run: runClusterRoutes },
  { isWanted: ({ allocateNodeCidrs }) => allocateNodeCidrs, run: runPodCidrs },
  { isWanted: ({ ciliumNodes }) => ciliumNodes !== 'off', run: runCiliumNodes },
  { run: runPodClaims },
  { run: runClaimAudit },
  { run: runReservationSweep },
  { run: (term, signal) => readFormerWrites({ ...term, necs: term.freshNecs }, signal) },
  { isWanted: ({ recordPods }) => recordPods, run: runRecords },
];

async function runPodCidrs(term: LeaderTerm, signal: AbortSignal): Promise<void> {
  const { config, secondAllocator, podRoutes, subnets } = term;
  const settings = blockSettingsOf(config);
  if (settings === undefined || secondAllocator === undefined) return;
  const routes = podRoutes === undefined ? {} : { routes: () => podRoutes.view() };
  const vpcCidrs = () => subnets.all().map(({ cidr }) => cidr);
  const blocks = numberBlocks(settings);
  await keepPodCidrs({ ...term, ...routes, secondAllocator, blocks, vpcCidrs }, signal);
}

async function runPodEips(term: LeaderTerm, signal: AbortSignal): Promise<void> {
  const { deployments } = term;
  const workloadOf = (pod: PodFacts) => findWorkload(pod, deployments?.values() ?? []);
  await runEips({ ...term, ...(deployments === undefined ? {} : { workloadOf }) }, signal);
}

async function runMasqConfig(term: LeaderTerm, signal: AbortSignal): Promise<void> {
  const { masqConfigs } = term;
  if (masqConfigs !== undefined) await syncMasqConfig({ ...term, masqConfigs }, signal);
}

async function runPodClaims(term: LeaderTerm, signal: AbortSignal): Promise<void> {
  const stop = reportUnservedRequests(term);
  try {
    await runClaims(term, signal);
  } finally {
    stop();
  }
}
