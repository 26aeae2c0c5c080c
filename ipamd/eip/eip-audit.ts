import { IDS_PER_CALL } from '../../cloud/batches.ts';
import type { CallContext, Eip } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { Informer } from '../../kube/informer.ts';
import type { AuditEvents } from '../audit/audit.ts';
import { areTooMany } from '../audit/find-orphans.ts';
import type { ClaimBook, EipClaimEntry } from './claim-book.ts';
import { holderOf } from './decide-lent-eip.ts';
import type { EipDeps } from './eip-deps.ts';
import { EIP_TAG } from './eip-identity.ts';
import { findEipDrift } from './find-eip-drift.ts';

/** Dependencies of the audit of EIPs. */
export type EipAuditDeps = Pick<EipDeps, 'cloud' | 'clock' | 'log' | 'leader'> & {
  readonly claims: Pick<Informer<EipClaimEntry>, 'isSynced'>;
  readonly book: ClaimBook;
  readonly events: AuditEvents;
  /** Requests that a claim is compared with the cloud. */
  readonly suspect: (key: string) => void;
  readonly settings: {
    readonly syncIntervalMs: number;
    readonly orphanGraceMs: number;
    readonly orphanLimit: number;
    readonly isDryRun: boolean;
    /** Of ipamd: events about orphaned EIPs are recorded on it. */
    readonly namespace: string;
  };
};

/** One pass may miss calls in flight; an orphan has to be found in this many passes. */
const LEAST_LOOKS = 2;
const LOOK_TIMEOUT_MS = 120_000;

/**
 * Compares all EIPs of the cluster with the claims periodically: claims that differ are repaired, orphaned EIPs are
 * released.
 */
export class EipAudit {
  readonly #deps: EipAuditDeps;
  /** Since when, and in how many passes, an EIP has been an orphan. */
  #orphans = new Map<string, { readonly sinceMs: number; readonly looks: number }>();

  constructor(deps: EipAuditDeps) {
    this.#deps = deps;
  }

  /** Runs one pass each interval until aborted. Rejects with the signal's reason. */
  async run(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#deps.clock.sleep(this.#deps.settings.syncIntervalMs, signal);
      await this.look(signal);
    }
  }

  /** Runs one pass. Rejects with the signal's reason only. */
  async look(signal: AbortSignal): Promise<void> {
    const { log, leader, book, claims, suspect } = this.#deps;
    try {
      if (!claims.isSynced) return;
      const eips = await this.#eips(contextOf(signal));
      if (!claims.isSynced) return;
      const { suspects, orphans } = findEipDrift(leader.clusterId, book.values(), eips);
      if (suspects.length > 0) log.warn('EIPClaims and cloud differ', { claims: suspects.slice(0, 20) });
      for (const key of suspects) suspect(key);
      if (areTooMany(orphans.length, eips.size)) return this.#alarm(orphans.length, eips.size);
      for (const orphan of this.#ripe(orphans)) await this.#collect(orphan, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      log.warn('EIPs could not be looked at', { error: error.message });
    }
  }

  async #eips(context: CallContext): Promise<ReadonlyMap<string, Eip>> {
    const { cloud, leader, book } = this.#deps;
    const tag = { key: EIP_TAG.cluster, value: leader.clusterId };
    const tagged = await cloud.eips.describe({ tag }, context);
    const known = new Set(tagged.map(({ eipId }) => eipId));
    const rest = [...new Set(book.values().flatMap(({ eipIds }) => eipIds))].filter((eipId) => !known.has(eipId));
    const lent: Eip[] = [];
    for (let start = 0; start < rest.length; start += IDS_PER_CALL) {
      lent.push(...(await cloud.eips.describe({ eipIds: rest.slice(start, start + IDS_PER_CALL) }, context)));
    }
    return new Map([...tagged, ...lent].map((eip) => [eip.eipId, eip]));
  }

  /** Reports too many orphans: it is more likely that claims were lost than that so many EIPs were. */
  #alarm(orphans: number, all: number): void {
    this.#orphans.clear();
    const text = `${orphans} of the ${all} EIPs of this cluster seem to be no claim's; none is released. Were EIPClaims lost, or is --clusterid that of another cluster?`;
    this.#tell('Warning', 'OrphanEIP', text);
  }

  #ripe(orphans: readonly Eip[]): readonly Eip[] {
    const { clock, settings } = this.#deps;
    const nowMs = clock.monotonicMs();
    const noted = orphans.map(({ eipId }) => {
      const known = this.#orphans.get(eipId);
      return [eipId, { sinceMs: known?.sinceMs ?? nowMs, looks: (known?.looks ?? 0) + 1 }] as const;
    });
    this.#orphans = new Map(noted);
    const isRipe = ({ eipId }: Eip): boolean => {
      const { sinceMs = nowMs, looks = 0 } = this.#orphans.get(eipId) ?? {};
      return looks >= LEAST_LOOKS && nowMs - sinceMs >= settings.orphanGraceMs;
    };
    return orphans.filter(isRipe).slice(0, settings.orphanLimit);
  }

  /** Releases an orphaned EIP, only if it is not bound: a bound one is in use. */
  async #collect(orphan: Eip, signal: AbortSignal): Promise<void> {
    const { cloud, log, settings, leader, book } = this.#deps;
    const what = `EIP ${orphan.publicIp} (${orphan.eipId}), made for ${orphan.tags[EIP_TAG.claim] ?? 'nobody known'},`;
    if (orphan.status !== 'UNBIND') {
      return this.#tell('Warning', 'OrphanEIP', `${what} is no claim's, and is ${holderOf(orphan)}; unbind it by hand`);
    }
    if (settings.isDryRun) return this.#tell('Warning', 'OrphanEIP', `${what} is no claim's: dry run`);
    try {
      const [now] = await cloud.eips.describe({ eipIds: [orphan.eipId] }, contextOf(signal));
      const still = now === undefined ? [] : findEipDrift(leader.clusterId, book.values(), mapOf(now)).orphans;
      if (still[0]?.status !== 'UNBIND') return;
      await cloud.tasks.settle(await cloud.eips.release(orphan.eipId, contextOf(signal)), contextOf(signal));
      log.info('orphaned EIP released', { eipId: orphan.eipId, publicIp: orphan.publicIp });
      this.#tell('Normal', 'OrphanEIPReleased', `${what} was no claim's and is released`);
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      this.#tell('Warning', 'OrphanEIP', `${what} is no claim's and could not be released: ${error.message}`);
    }
  }

  #tell(type: 'Normal' | 'Warning', reason: 'OrphanEIP' | 'OrphanEIPReleased', message: string): void {
    const involved = { apiVersion: 'v1', kind: 'Namespace', name: this.#deps.settings.namespace };
    this.#deps.events.record({ involved, type, reason, message });
  }
}

function mapOf(eip: Eip): ReadonlyMap<string, Eip> {
  return new Map([[eip.eipId, eip]]);
}

/** Builds the context of a call: lowest priority, because no Pod waits for it. */
function contextOf(signal: AbortSignal): CallContext {
  return { priority: 'gc', owner: 'audit', signal, timeoutMs: LOOK_TIMEOUT_MS };
}
