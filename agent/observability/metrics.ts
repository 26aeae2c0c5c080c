import {
  counter,
  gauge,
  histogram,
  type MetricRows,
  type MetricsOf,
  type OpenMetrics,
  openMetrics,
} from '../../runtime/metrics/metric-table.ts';

// From well under the 3 ms that wiring may take up to the 40 s that a client waits for supply.
const ADD_BUCKETS_S = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 15, 40];

const ROWS = {
  addPhases: histogram('add_phase_seconds', 'Time that an ADD spent in each phase.', ADD_BUCKETS_S, 'phase'),
  requests: histogram(
    'request_seconds',
    'Time that a call took, by verb and CNI code (0 is success).',
    ADD_BUCKETS_S,
    'verb',
    'code',
  ),
  statusCode: gauge(
    'status_code',
    'What CNI STATUS says now: 0 when an ADD can be served, 50 when not, 51 when not and Pods of the node may be cut off.',
  ),
  poolAddresses: gauge('pool_addresses', 'Addresses of the node by ENI and state.', 'eni', 'state'),
  leases: gauge('leases', 'Attachments that the agent keeps.'),
  passes: counter('repair_passes_total', 'Repair passes of the whole node, by trigger.', 'trigger'),
  repairs: counter('repairs_total', 'Kernel operations done by repair, by kind of object.', 'kind'),
  drift: counter('drift_total', 'Objects found different from what they should be, by kind.', 'kind'),
  fights: gauge('fights', 'Objects that another program kept changing back within the last minute.'),
  fightsStarted: counter('fights_total', 'Fights noticed, by kind of object.', 'kind'),
  conflicts: gauge('conflicts', 'Foreign kernel objects in the place of ours; never overwritten.'),
  journalErrors: counter('journal_errors_total', 'Journal writes that failed.'),
  supplyErrors: counter('supply_errors_total', 'Supply documents refused; the last good one stays in force.'),
  enis: gauge('enis', 'ENIs of the supply, by whether their link is set up.', 'state'),
  overruns: counter('notification_overruns_total', 'Kernel notifications lost; each led to a full resync.'),
  forcedReuse: counter('forced_reuse_total', 'Cooling addresses handed out early because no other address was left.'),
  criReachable: gauge('cri_reachable', '1 when the container runtime answers, 0 when garbage collection must wait.'),
  collected: counter('collected_total', 'Leases released because their sandbox is gone.'),
  spoolPending: gauge('spool_pending', 'Spooled DELs not done yet.'),
  migrations: counter('rule_mode_migrations_total', 'Changes from one rule mode to the other.'),
  publications: counter(
    'publications_total',
    "Writes of the agent's part of the NodeENIConfig, by outcome.",
    'outcome',
  ),
  offers: gauge('offered_addresses', 'Addresses that are offered back and out of use.'),
  objectFaults: gauge(
    'object_faults',
    'Fields of the NodeENIConfig that are not accepted, by kind: annotation, object.',
    'kind',
  ),
  missingRights: gauge(
    'missing_right',
    'Rights at the API server that turned out to be missing, 1 each; token: it was not accepted.',
    'right',
  ),
  apiSilence: gauge(
    'api_server_silence_seconds',
    'Time since the last contact with the API server; infinite when there was none.',
  ),
  serviceCidrsUnknown: gauge(
    'service_cidrs_unknown',
    '1 when the node has exclusive ENIs and no range of Services is known: their Pods reach no Service.',
  ),
  registeredWaiting: gauge(
    'registered_addresses_waiting',
    'Addresses without a Pod that wait until no load balancer has them as a target.',
  ),
  registeredOverdue: counter(
    'registered_addresses_overdue_total',
    'Addresses that serve again although they are still published as targets of load balancers: --load-balancer-wait was over.',
  ),
  deviceRegistrations: counter(
    'device_plugin_registrations_total',
    'Registrations with kubelet, by outcome: registered, refused, unreachable, silent, unserved.',
    'outcome',
  ),
  devices: gauge('device_plugin_devices', 'Devices reported to kubelet, by resource and health.', 'resource', 'health'),
  podCidrAddresses: gauge(
    'pod_cidr_addresses',
    "Addresses of the node's podCIDR by state: used by a GlobalRoute Pod, cooling, free. None where no Pod is on the bridge.",
    'state',
  ),
  podCidrMissing: gauge(
    'pod_cidr_missing',
    '1 while GlobalRoute Pods are expected on the node and it has no podCIDR for them, or only one that is refused; else 0.',
  ),
  podCidrFull: counter(
    'pod_cidr_full_total',
    'ADDs of GlobalRoute Pods that failed because every address of the podCIDR was in use.',
  ),
  fastPath: gauge(
    'fast_path',
    '1 for the way in which packets of known flows are forwarded: off, flowtable or bpf.',
    'mode',
  ),
  flowsForgotten: counter(
    'fast_path_forgotten_total',
    'Times that all flows of the fast path ended because the kernel was changed, by kind of object; repair: by a pass of the agent.',
    'kind',
  ),
  fastPathLinks: gauge(
    'fast_path_links',
    'ENIs and links of Pods that have the programs of the fast path (bpf), as of the last pass.',
  ),
} satisfies MetricRows<undefined>;

/** All metrics of the agent. */
export const AGENT_METRICS = { prefix: 'tke_eni_', rows: ROWS };

/** The metrics of the agent, by what counts them. */
export type Metrics = MetricsOf<typeof ROWS>;

/** The agent's metrics and their registry: for scrapes, and for reading single values. */
export type MetricsRegistry = OpenMetrics<typeof ROWS>;

/** Opens the metrics of the agent; those of its process are the host's. */
export function createMetrics(): MetricsRegistry {
  return openMetrics(AGENT_METRICS, undefined);
}
