import { openRecordInformers, type RecordInformers } from '../open-informers.ts';
import { runRecords } from '../records/run-records.ts';
import type { LeadDeps } from './lead.ts';

/** Of the calls to the API server: what addresses wait for goes before. */
const SHARE_OF_CALLS = 0.25;

/** Opens the caches of records; they follow while `keepPodRecords` goes. */
export function openRecords(deps: LeadDeps): RecordInformers {
  return openRecordInformers(deps.informerDeps);
}

/** Keeps VpcIPs and VpcIPClaims of Pods until aborted. Never rejects but with a fault of ours. */
export async function keepPodRecords(deps: LeadDeps, records: RecordInformers, signal: AbortSignal): Promise<void> {
  const { clock, log, random, kube, metrics } = deps.runtime;
  const { pods, necs } = deps.informers;
  const { vips, claims } = records;
  const writesPerSecond = Math.max(1, deps.config.kubeClientQps * SHARE_OF_CALLS);
  const observers = { observe: metrics.records, observer: metrics.controller };
  const delayMs = deps.config.recordDelayMs;
  const all = { kube, pods, necs, vips, claims, clock, log, random, writesPerSecond, delayMs, ...observers };
  const following = [vips.start(signal), claims.start(signal)];
  await runRecords(all, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  await Promise.all(following);
}
