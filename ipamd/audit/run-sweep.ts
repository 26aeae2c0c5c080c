import type { CallContext } from '../../cloud/cloud.ts';
import { type OrphanKind, type OrphanOutcome, OrphanSweep, type Swept } from '../../cloud/orphan-sweep.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import type { Term } from '../calls/term.ts';
import type { IpamdConfig } from '../config/options.ts';
import type { IpamdEventReason } from '../events/event-reasons.ts';

/** What a sweep for orphans works with. */
export type SweepDeps = Pick<Term, 'clock' | 'log' | 'events'> & {
  readonly kube: Pick<KubeClient, 'get'>;
  readonly config: Pick<
    IpamdConfig,
    'clusterId' | 'namespace' | 'syncIntervalMs' | 'orphanGraceMs' | 'orphanLimit' | 'orphanDryRun'
  >;
  /** After a loss nothing is removed for a while. */
  readonly definitions: Pick<Term['definitions'], 'wereLostLately'>;
};

const CALL_TIMEOUT_MS = 120_000;
/** Part of the interval after which a sweep that came to nothing is repeated; twice as much each further time, up to the interval. */
const RETRY_SHARE = 0.2;

/** Sweeps one kind until aborted. Rejects with the signal's reason. */
export type Sweep = (deps: Pick<SweepDeps, 'clock' | 'log' | 'config'>, signal: AbortSignal) => Promise<never>;

/** Makes a sweep of a kind; those of several kinds are one list then. */
export function sweepOf<T>(kind: OrphanKind<T>, options: SweepOptions<T> = {}): Sweep {
  return (deps, signal) => runSweep(kind, deps, signal, options);
}

/** When a kind is swept, and what becomes of the results. */
type SweepOptions<T> = {
  /** Caches that it reads: it begins once each has its first list. */
  readonly caches?: readonly Pick<Informer<unknown>, 'synced'>[];
  /** Reports whether there may be any: otherwise the cloud is not asked. Default: there may. */
  readonly isWanted?: () => boolean;
  readonly onSwept?: (swept: Swept<T>, tookMs: number) => void;
};

/**
 * Sweeps one kind each interval until aborted, first after one interval, and sooner after a sweep that came to nothing. Rejects
 * with the signal's reason.
 */
export async function runSweep<T>(
  kind: OrphanKind<T>,
  deps: Pick<SweepDeps, 'clock' | 'log' | 'config'>,
  signal: AbortSignal,
  { caches, isWanted = () => true, onSwept }: SweepOptions<T> = {},
): Promise<never> {
  const { clock, config } = deps;
  const sweep = new OrphanSweep(kind, deps, config.orphanGraceMs);
  let waitMs = config.syncIntervalMs;
  let vain = 0;
  if (caches !== undefined) await Promise.all(caches.map((one) => one.synced(signal)));
  for (;;) {
    await clock.sleep(waitMs, signal);
    if (!isWanted()) continue;
    const startedMs = clock.monotonicMs();
    const swept = await sweep.sweep(sweepContext(signal));
    onSwept?.(swept, clock.monotonicMs() - startedMs);
    vain = swept.kind === 'skipped' ? vain + 1 : 0;
    waitMs = config.syncIntervalMs * (vain === 0 ? 1 : Math.min(1, RETRY_SHARE * 2 ** (vain - 1)));
  }
}

/** Builds the context of a call: lowest priority, because no Pod waits for it. */
export function sweepContext(signal: AbortSignal): CallContext {
  return { priority: 'gc', owner: 'audit', signal, timeoutMs: CALL_TIMEOUT_MS };
}

/** The words of the events about orphans of one kind. */
type OrphanWords = {
  /** Reasons of an orphan, and of one that was removed. */
  readonly reasons: readonly [IpamdEventReason, IpamdEventReason];
  /** What an orphan lacks: `belongs to no claim`, and in the past. */
  readonly lacks: readonly [string, string];
  readonly removed: string;
};

/** Records an event on ipamd's namespace: an orphan belongs to no object of the cluster. */
export function recordOrphan(
  { events, config }: Pick<SweepDeps, 'events' | 'config'>,
  type: 'Normal' | 'Warning',
  reason: IpamdEventReason,
  message: string,
): void {
  const involved = { apiVersion: 'v1', kind: 'Namespace', name: config.namespace };
  events.record({ involved, type, reason, message });
}

/** Reports what became of an orphan; what waits or was spared is not worth an event. */
export function reportOrphan(
  deps: Pick<SweepDeps, 'events' | 'config'>,
  { reasons: [found, gone], lacks: [lacks, lacked], removed }: OrphanWords,
  what: string,
  outcome: OrphanOutcome,
): void {
  const warn = (end: string): void => recordOrphan(deps, 'Warning', found, `${what} ${lacks}${end}`);
  if (outcome.kind === 'removed') recordOrphan(deps, 'Normal', gone, `${what} ${lacked} and is ${removed}`);
  if (outcome.kind === 'kept') warn(`, and ${outcome.why}`);
  if (outcome.kind === 'later') warn(`: ${outcome.why}`);
  if (outcome.kind === 'failed') warn(` and could not be ${removed}: ${outcome.error.message}`);
}
