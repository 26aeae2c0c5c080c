import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type ClusterMetrics, createClusterMetrics } from './cluster-metrics.ts';
import { createDevicePluginMetrics, type DevicePluginMetrics } from './device-plugin-metrics.ts';
import { createFastPathMetrics, type FastPathMetrics } from './fast-path-metrics.ts';
import { createPodCidrMetrics, type PodCidrMetrics } from './pod-cidr-metrics.ts';

/**
 * Phases of an ADD, as the histogram labels them: waiting for the attachment's lock, getting an address, recording the
 * lease, wiring, verifying the result.
 */
export type AddPhase = 'queue' | 'allocate' | 'record' | 'netlink' | 'verify';

/** One value of the pool gauge: how many addresses of an ENI are in a state. */
export type PoolSample = { readonly eniId: string; readonly state: string; readonly addressCount: number };

/** All metrics of the agent. The methods are domain verbs, so that no use case depends on Prometheus. */
export type Metrics = ClusterMetrics &
  DevicePluginMetrics &
  PodCidrMetrics &
  FastPathMetrics & {
    addPhase(phase: AddPhase, durationMs: number): void;
    request(verb: string, code: number, durationMs: number): void;
    statusCode(code: number): void;
    pool(samples: readonly PoolSample[]): void;
    leases(count: number): void;
    pass(trigger: string): void;
    repaired(kind: string, operationCount: number): void;
    drift(kind: string, objectCount: number): void;
    fights(count: number): void;
    fightStarted(kind: string): void;
    conflicts(count: number): void;
    journalError(): void;
    supplyError(): void;
    enis(ready: number, missing: number): void;
    overrun(): void;
    forcedReuse(): void;
    criReachable(reachable: boolean): void;
    collected(leaseCount: number): void;
    spoolPending(count: number): void;
    migrated(): void;
  };

/** The agent's metrics and their registry. */
export type MetricsRegistry = Metrics & {
  /** For scrapes, for the generated docs and for reading single values. */
  readonly registry: Registry;
};

const MS_PER_S = 1000;
/** The metrics `nodejs_eventloop_lag_*` are sampled so often, also by an idle process: each 10 ms would be 0.6 % of a core. */
const LAG_PRECISION_MS = 100;
// From well under the 3 ms that wiring may take up to the 40 s that a client waits for supply.
const ADD_BUCKETS_S = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 15, 40];

/** Creates a registry of its own with every metric of the agent at zero. */
export function createMetrics(options: { readonly processMetrics: boolean }): MetricsRegistry {
  const registers = [new Registry()];
  const registry = registers[0] as Registry;
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter<L>({ name: `tke_eni_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge<L>({ name: `tke_eni_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Histogram<L>({ name: `tke_eni_${name}`, help, labelNames, buckets: ADD_BUCKETS_S, registers });

  const addPhase = histogram('add_phase_seconds', 'Time that an ADD spent in each phase.', ['phase']);
  const requests = histogram('request_seconds', 'Time that a call took, by verb and CNI code (0 is success).', [
    'verb',
    'code',
  ]);
  const status = gauge(
    'status_code',
    'What CNI STATUS says now: 0 when an ADD can be served, 50 when not, 51 when not and Pods of the node may be cut off.',
  );
  const pool = gauge('pool_addresses', 'Addresses of the node by ENI and state.', ['eni', 'state']);
  const leases = gauge('leases', 'Attachments that the agent keeps.');
  const passes = counter('repair_passes_total', 'Repair passes of the whole node, by trigger.', ['trigger']);
  const repairs = counter('repairs_total', 'Kernel operations done by repair, by kind of object.', ['kind']);
  const drift = counter('drift_total', 'Objects found different from what they should be, by kind.', ['kind']);
  const fights = gauge('fights', 'Objects that another program kept changing back within the last minute.');
  const fightsStarted = counter('fights_total', 'Fights noticed, by kind of object.', ['kind']);
  const conflicts = gauge('conflicts', 'Foreign kernel objects in the place of ours; never overwritten.');
  const journalErrors = counter('journal_errors_total', 'Journal writes that failed.');
  const supplyErrors = counter('supply_errors_total', 'Supply documents refused; the last good one stays in force.');
  const enis = gauge('enis', 'ENIs of the supply, by whether their link is set up.', ['state']);
  const overruns = counter('notification_overruns_total', 'Kernel notifications lost; each led to a full resync.');
  const forcedReuse = counter(
    'forced_reuse_total',
    'Cooling addresses handed out early because no other address was left.',
  );
  const cri = gauge('cri_reachable', '1 when the container runtime answers, 0 when garbage collection must wait.');
  const collected = counter('collected_total', 'Leases released because their sandbox is gone.');
  const spool = gauge('spool_pending', 'Spooled DELs not done yet.');
  const migrations = counter('rule_mode_migrations_total', 'Changes from one rule mode to the other.');
  if (options.processMetrics)
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_PRECISION_MS });

  return {
    addPhase: (phase, durationMs) => addPhase.observe({ phase }, durationMs / MS_PER_S),
    request: (verb, code, durationMs) => requests.observe({ verb, code: String(code) }, durationMs / MS_PER_S),
    statusCode: (code) => status.set(code),
    pool: (samples) => {
      pool.reset();
      for (const sample of samples) pool.set({ eni: sample.eniId, state: sample.state }, sample.addressCount);
    },
    leases: (count) => leases.set(count),
    pass: (trigger) => passes.inc({ trigger }),
    repaired: (kind, operationCount) => repairs.inc({ kind }, operationCount),
    drift: (kind, objectCount) => drift.inc({ kind }, objectCount),
    fights: (count) => fights.set(count),
    fightStarted: (kind) => fightsStarted.inc({ kind }),
    conflicts: (count) => conflicts.set(count),
    journalError: () => journalErrors.inc(),
    supplyError: () => supplyErrors.inc(),
    enis: (ready, missing) => {
      enis.set({ state: 'ready' }, ready);
      enis.set({ state: 'missing' }, missing);
    },
    overrun: () => overruns.inc(),
    forcedReuse: () => forcedReuse.inc(),
    criReachable: (reachable) => cri.set(reachable ? 1 : 0),
    collected: (leaseCount) => collected.inc(leaseCount),
    spoolPending: (count) => spool.set(count),
    migrated: () => migrations.inc(),
    ...createClusterMetrics(registry),
    ...createDevicePluginMetrics(registry),
    ...createPodCidrMetrics(registry),
    ...createFastPathMetrics(registry),
    registry,
  };
}
