import { runRecords } from '../records/run-records.ts';
import type { LeaderDeps } from './leader-deps.ts';
import { openRecordInformers, type RecordInformers } from './open-informers.ts';

/** Share of the calls to the API server: calls that addresses wait for have precedence. */
const SHARE_OF_CALLS = 0.25;

/** Opens the caches of VpcIPs and VpcIPClaims, both records and those of static addresses. */
export function openRecords(deps: LeaderDeps): RecordInformers {
  return openRecordInformers(deps.informerDeps);
}

/** Runs both informers until aborted. */
export async function followRecords({ vips, claims }: RecordInformers, signal: AbortSignal): Promise<void> {
  await Promise.all([vips.start(signal), claims.start(signal)]);
}

/** Runs the records controller until aborted. Rejects only with a fault of ipamd. */
export async function runPodRecords(deps: LeaderDeps, records: RecordInformers, signal: AbortSignal): Promise<void> {
  const { clock, log, random, kube, metrics } = deps.runtime;
  const { pods, necs } = deps.informers;
  const { vips, claims } = records;
  const writesPerSecond = Math.max(1, deps.config.kubeClientQps * SHARE_OF_CALLS);
  const observers = { observe: metrics.records, observer: metrics.controller };
  const delayMs = deps.config.recordDelayMs;
  const all = { kube, pods, necs, vips, claims, clock, log, random, writesPerSecond, delayMs, ...observers };
  await runRecords(all, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
