import { observeProgram, openSources, PROGRAM_ROWS, type ProgramSources } from '../../observability/program-metrics.ts';
import type { Clock } from '../../runtime/clock.ts';
import {
  collected,
  counter,
  gauge,
  histogram,
  type MetricRows,
  MS_PER_S,
  openMetrics,
  samplesBy,
  subjects,
  termGauge,
} from '../../runtime/metrics/metric-table.ts';
import type { AboutProcess } from '../../runtime/metrics/process-rows.ts';
import type { ControllerName } from '../config/controllers-value.ts';

/**
 * State of a controller of this replica. `waiting`: another program does the same, and holds the lock of it; `off`: not
 * named by --controllers; `noRights`: its rights are missing.
 */
export type ControllerState = 'running' | 'waiting' | 'standby' | 'off' | 'noRights';

/** What is read at each scrape; each is absent until it exists. */
type CcmSources = ProgramSources & {
  controllers?: () => Iterable<readonly [ControllerName, ControllerState]>;
  /** How many Secrets of Ingresses are in which state. */
  secrets?: () => ReadonlyMap<string, number>;
  /** When the certificates expire that Ingresses use, milliseconds since the epoch. */
  expiriesMs?: () => readonly number[];
};

/** As upstream has them: a second to 17 minutes. */
const DELAY_BUCKETS_S = [1, 4, 16, 64, 256, 1024];

const ROWS = {
  ...PROGRAM_ROWS,
  controllers: collected(
    'controller',
    '1 for the state of each controller of this replica: running, waiting for another program that does the same, standby, off by --controllers, or noRights.',
    ['controller', 'state'],
    ({ controllers }) => [...(controllers?.() ?? [])].map(([controller, state]) => [{ controller, state }, 1]),
  ),
  orphanLoadBalancers: termGauge(
    'orphan_load_balancers',
    'Load balancers that the last sweep found with the tags of this cluster, and without their Service.',
  ),
  orphanOutcomes: counter(
    'orphan_load_balancer_outcomes_total',
    'What was done about load balancers without a Service: reported, deleted, kept (something forbids it), failed.',
    'outcome',
  ),
  driftsRepaired: counter(
    'load_balancer_drifts_repaired_total',
    'Changes of load balancers of Services by somebody else that were set again, by field.',
    'field',
  ),
  driftsLeft: subjects(
    'load_balancer_drifts',
    'Services whose load balancer somebody else changed, with --load-balancer-drift=report, by field.',
    'field',
  ),
  gatesPending: termGauge(
    'readiness_gates_pending',
    'Pods with ready containers whose readiness gate of load balancers is not True, by reason.',
    'reason',
  ),
  certificateOutcomes: counter(
    'certificate_outcomes_total',
    'What was done about certificates of Secrets of Ingresses: uploaded, refused (the cloud does not take it), deleted, kept (something forbids its deletion), failed.',
    'outcome',
  ),
  certificates: gauge(
    'certificates',
    'Certificates of Secrets that the last sweep found in the account with the tags of this cluster, used and unused.',
    'state',
  ),
  secrets: collected(
    'ingress_secrets',
    'Secrets that Ingresses name, by what is known of them: found, missing, forbidden, unknown (not read yet), unkept (no room).',
    ['state'],
    ({ secrets }) => samplesBy('state', secrets?.() ?? []),
  ),
  certificateExpiry: collected(
    'certificate_expiry_timestamp_seconds',
    'When the first certificate of a Secret expires that an Ingress uses, seconds since the epoch; 0: none is used.',
    [],
    ({ expiriesMs }) => {
      const all = expiriesMs?.() ?? [];
      return all.length === 0 ? 0 : all.reduce((a, b) => Math.min(a, b)) / MS_PER_S;
    },
  ),
  ingressProblems: subjects(
    'ingress_problems',
    'Ingresses with which something is wrong now, by the reason of the event.',
    'reason',
  ),
  // What has upstream's meaning has upstream's name: dashboards of other cloud controller managers go on. Addresses are
  // written before the taint goes, so both times are the same.
  // @see cloud-provider controllers/node/metrics.go, controllers/route/metrics.go
  taintRemovalDelay: {
    ...histogram(
      'cloud_provider_taint_removal_delay_seconds',
      'Seconds from the creation of a Node until its taint of the cloud provider was removed.',
      DELAY_BUCKETS_S,
    ),
    prefix: 'node_controller_',
  },
  initialSyncDelay: {
    ...histogram(
      'initial_node_sync_delay_seconds',
      'Seconds from the creation of a Node until it had all that its instance gives it.',
      DELAY_BUCKETS_S,
    ),
    prefix: 'node_controller_',
  },
  routeSyncs: {
    ...counter('route_sync_total', 'Times that routes were compared with the Nodes.'),
    prefix: 'route_controller_',
  },
} satisfies MetricRows<CcmSources>;

/** All metrics of the cloud controller manager. */
export const CCM_METRICS = { prefix: 'tke_cloud_controller_manager_', rows: ROWS };

/** The metrics of the process, and what its clients report to: they exist before the clients. */
export type CcmMetrics = ReturnType<typeof createCcmMetrics>;

/** Opens the metrics of the cloud controller manager. */
export function createCcmMetrics(clock: Clock, about: AboutProcess) {
  const sources: CcmSources = openSources(clock, about);
  const metrics = openMetrics(CCM_METRICS, sources);
  return {
    ...metrics,
    ...observeProgram(metrics, sources, 'tke-cloud-controller-manager'),
    sources,
    /** Clears the state that only a leader has: another replica leads now. */
    clearTerm: (): void => {
      metrics.clearTerm();
      sources.problems.clearTerm();
      delete sources.secrets;
      delete sources.expiriesMs;
    },
  };
}
