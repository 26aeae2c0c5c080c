import { holdRoutesLock } from '../../pod-routes/hold-routes-lock.ts';
import { keepPodRoutes } from '../../pod-routes/keep-pod-routes.ts';
import { findWorkload } from '../cache/find-workload.ts';
import type { PodFacts } from '../cache/pod-facts.ts';
import { readFormerWrites } from '../calls/read-former-writes.ts';
import { numberBlocks } from '../config/cidr-blocks.ts';
import { involvedConfigMap } from '../config/involved-config-map.ts';
import { blockSettingsOf, podRecordsOf } from '../config/ipamd-config.ts';
import type { IpamdConfig } from '../config/options.ts';
import { runVpcEnis } from '../exclusive/run-vpc-enis.ts';
import { runEips } from '../guests/eip/run-eips.ts';
import { syncMasqConfig } from '../guests/eip/sync-masq-config.ts';
import { keepPodCidrs } from '../guests/pod-cidrs/keep-pod-cidrs.ts';
import { runRecords } from '../guests/records/run-records.ts';
import { runClaimAudit } from '../guests/static/audit-claims.ts';
import { runClaims } from '../guests/static/run-claims.ts';
import { runReservationSweep } from '../guests/static/sweep-reservations.ts';
import { reportUnservedRequests } from '../guests/static/unserved-requests.ts';
import { runSubnetReports } from '../subnets/run-subnet-reports.ts';
import type { LeaderTerm } from './open-term.ts';
import { runAudit } from './run-audit.ts';
import { runCiliumNodes } from './run-cilium-nodes.ts';

/** Work of a term beside that on nodes and their supply. */
type Controller = {
  /** Whether the settings give it something to do; default: they do. */
  readonly isWanted?: (config: IpamdConfig) => boolean;
  /**
   * Runs until aborted, or until nothing is left to do. A fault of the cloud or of the API server is reported and tried
   * again, never thrown.
   */
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
  { isWanted: (config) => podRecordsOf(config) !== 'none', run: runPodRecords },
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

async function runPodRecords(term: LeaderTerm, signal: AbortSignal): Promise<void> {
  await runRecords({ ...term, hasClaims: podRecordsOf(term.config) === 'all' }, signal);
}

async function runPodClaims(term: LeaderTerm, signal: AbortSignal): Promise<void> {
  const stop = reportUnservedRequests(term);
  try {
    await runClaims(term, signal);
  } finally {
    stop();
  }
}

/**
 * Keeps the VPC's routes to the networks of Nodes until aborted, with --gr-routes=ipamd, while no other program keeps
 * them. Rejects only with a fault of ipamd.
 */
async function runClusterRoutes(term: LeaderTerm, signal: AbortSignal): Promise<void> {
  const { config, cloud, log, events, metrics, podRoutes } = term;
  if (podRoutes === undefined) return;
  const keep = (held: AbortSignal): Promise<void> =>
    keepPodRoutes(
      {
        ...term,
        routes: cloud.routes.global,
        subnets: cloud.subnets,
        cacheOf: () => podRoutes,
        vpcCure: 'set TKE_ENI_IPAMD_VPC_ID in the ConfigMap',
        placeSetting: 'TKE_ENI_IPAMD_VPC_ID in the ConfigMap',
        ownership: 'network',
        clusterCidrs: config.clusterCidrs,
        clusterId: config.clusterId,
        percent: config.nodeReleasePercent,
      },
      held,
    );
  const report = (holder: string | undefined): void => {
    const problem = holder === undefined ? [] : [{ kind: ROUTES_KEPT, name: holder }];
    metrics.problems.report('routes', problem);
    if (holder === undefined) return;
    const message = `ipamd keeps no routes of podCIDRs: ${holder} does (Endpoints tke-eni-pod-routes); set --gr-routes=ccm here, or --routes=none there`;
    log.error('another program keeps the routes of podCIDRs', { holder });
    events.record({ involved: involvedConfigMap(config), type: 'Warning', reason: ROUTES_KEPT, message });
  };
  await holdRoutesLock({ ...term, program: 'tke-eni-ipamd', report }, keep, signal);
}

/** Kind of the problem, and reason of the event. */
const ROUTES_KEPT = 'RoutesKeptByOther';
