import { runSweep } from '../audit/run-sweep.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import type { PodFacts } from '../cache/pod-facts.ts';
import type { ClaimFacts } from '../cache/record-facts.ts';
import { numberBlocks } from '../config/cidr-blocks.ts';
import { blockSettingsOf } from '../config/ipamd-config.ts';
import type { IpamdConfig } from '../config/options.ts';
import { runVpcEnis } from '../direct/run-vpc-enis.ts';
import { runEips } from '../eip/run-eips.ts';
import { syncMasqConfig } from '../eip/sync-masq-config.ts';
import { isStaticNode } from '../node-lifecycle/decide-policy.ts';
import { keepPodCidrs } from '../pod-cidrs/keep-pod-cidrs.ts';
import { runRecords } from '../records/run-records.ts';
import { runClaimAudit } from '../static/audit-claims.ts';
import { findSubnet } from '../static/find-subnet.ts';
import { findWorkload } from '../static/find-workload.ts';
import { vpcIdsOf } from '../static/reservation-search.ts';
import { runClaims } from '../static/run-claims.ts';
import { sweptReservations } from '../static/sweep-reservations.ts';
import { reportUnservedRequests } from '../static/unserved-requests.ts';
import { runSubnetReports } from '../subnets/run-subnet-reports.ts';
import { readFormerWrites } from '../supply/read-former-writes.ts';
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
  {
    run: (term, signal) =>
      runClaimAudit(
        {
          ...term,
          enqueue: (key) => term.queues.claims.add(key),
          intervalMs: term.config.claimAuditIntervalMs,
        },
        signal,
      ),
  },
  { run: runReservationSweep },
  { run: (term, signal) => readFormerWrites({ ...term, necs: term.freshNecs }, signal) },
  {
    isWanted: ({ recordPods }) => recordPods,
    run: (term, signal) => runRecords(term, signal),
  },
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

/** Without a super node, the flag or a reservation that a claim names, the right to describe reservations may be lacking. */
async function runReservationSweep(term: LeaderTerm, signal: AbortSignal): Promise<never> {
  const { config, nodes, claims, subnets, metrics } = term;
  const isServing = (node: NodeEntry): boolean => !node.isInstance && isStaticNode(node, config.enableStaticIp);
  const isNamed = ({ staticObject }: ClaimFacts): boolean => staticObject?.decoded?.status?.reservation !== undefined;
  const subnetOf = (ip: string) => findSubnet(ip, subnets.all());
  const kind = sweptReservations({ ...term, vpcIds: () => vpcIdsOf(term), subnetOf });
  return await runSweep(kind, term, signal, {
    isWanted: () =>
      config.reserveKeptAddresses || [...nodes.values()].some(isServing) || [...claims.values()].some(isNamed),
    onSwept: (swept) => {
      if (swept.kind === 'done') metrics.orphanReservations.set(swept.orphans.length);
    },
  });
}
