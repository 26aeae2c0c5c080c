import { IDS_PER_CALL } from '../../cloud/batches.ts';
import type { CallContext, Eip } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { areTooMany, OrphanTracker } from '../../cloud/orphan-tracker.ts';
import { EIP_TAG } from '../../crd/cloud-tags.ts';
import type { Informer } from '../../kube/informer.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { AuditEvents } from '../audit/audit.ts';
import { bindingText } from './decide-listed-eip.ts';
import type { EipClaimCache, EipClaimEntry } from './eip-claim-cache.ts';
import { EIP_CLAIMS, type EipDeps } from './eip-deps.ts';
import { isMadeHere, isShortened } from './eip-identity.ts';
import { evaluateEipDrift } from './evaluate-eip-drift.ts';

/** Dependencies of the audit of EIPs. */
export type EipAuditDeps = Pick<EipDeps, 'cloud' | 'kube' | 'clock' | 'log' | 'leader'> & {
  readonly claims: Pick<Informer<EipClaimEntry>, 'isSynced'>;
  readonly claimCache: EipClaimCache;
  readonly events: AuditEvents;
  /** Tells whether claims were lost a short time ago: no EIP is released as an orphan then. Default: never. */
  readonly isRebuilding?: () => boolean;
  /** Requests that a claim is compared with the cloud. */
  readonly requestComparison: (key: string) => void;
  readonly settings: {
    readonly syncIntervalMs: number;
    readonly orphanGraceMs: number;
    readonly orphanLimit: number;
    readonly isDryRun: boolean;
    /** Of ipamd: events about orphaned EIPs are recorded on it. */
    readonly namespace: string;
  };
};

const CALL_TIMEOUT_MS = 120_000;

/**
 * Compares all EIPs of the cluster with the claims periodically: claims that differ are repaired, orphaned EIPs are
 * released.
 */
export class EipAudit {
  readonly #deps: EipAuditDeps;
  readonly #tracker = new OrphanTracker<Eip>(({ eipId }) => eipId);

  constructor(deps: EipAuditDeps) {
    this.#deps = deps;
  }

  /** Runs one pass each interval until aborted. Rejects with the signal's reason. */
  async run(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#deps.clock.sleep(this.#deps.settings.syncIntervalMs, signal);
      await this.runOnce(signal);
    }
  }

  /** Runs one pass. Rejects with the signal's reason only. */
  async runOnce(signal: AbortSignal): Promise<void> {
    const { clock, log, leader, claimCache, claims, requestComparison, settings } = this.#deps;
    try {
      if (!claims.isSynced) return;
      const eips = await this.#describeEips(contextOf(signal));
      if (!claims.isSynced) return;
      const { differing, orphans } = evaluateEipDrift(leader.clusterId, claimCache.values(), eips);
      if (differing.length > 0) log.warn('EIPClaims and cloud differ', { claims: differing.slice(0, 20) });
      for (const key of differing) requestComparison(key);
      const ownCount = [...eips.values()].filter((eip) => isMadeHere(eip, leader.clusterId)).length;
      if (areTooMany(orphans.length, ownCount)) return this.#reportTooMany(orphans.length, ownCount);
      const due = this.#tracker.note(orphans, clock.monotonicMs(), settings.orphanGraceMs);
      for (const orphan of due.slice(0, settings.orphanLimit)) await this.#release(orphan, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      log.warn('EIPs could not be described', { error: error.message });
    }
  }

  async #describeEips(context: CallContext): Promise<ReadonlyMap<string, Eip>> {
    const { cloud, leader, claimCache } = this.#deps;
    const tag = { key: EIP_TAG.cluster, value: leader.clusterId };
    const tagged = await cloud.eips.describe({ tag }, context);
    const known = new Set(tagged.map(({ eipId }) => eipId));
    const rest = [...new Set(claimCache.values().flatMap(({ eipIds }) => eipIds))].filter((eipId) => !known.has(eipId));
    const listed: Eip[] = [];
    for (let start = 0; start < rest.length; start += IDS_PER_CALL) {
      listed.push(...(await cloud.eips.describe({ eipIds: rest.slice(start, start + IDS_PER_CALL) }, context)));
    }
    return new Map([...tagged, ...listed].map((eip) => [eip.eipId, eip]));
  }

  /** Reports too many orphans: it is more likely that claims were lost than that so many EIPs were. */
  #reportTooMany(orphans: number, all: number): void {
    this.#tracker.clear();
    const text = `${orphans} of the ${all} EIPs that ipamd allocated for this cluster seem to belong to no claim; none is released. Were EIPClaims lost, or is --clusterid that of another cluster?`;
    this.#report('Warning', 'OrphanEIP', text);
  }

  /** Releases an orphaned EIP, only if it is not bound: a bound one is in use. */
  async #release(orphan: Eip, signal: AbortSignal): Promise<void> {
    const { cloud, log, settings, leader, claimCache } = this.#deps;
    const what = `EIP ${orphan.publicIp} (${orphan.eipId}), allocated for ${orphan.tags[EIP_TAG.claim] ?? ''},`;
    if (orphan.status !== 'UNBIND') {
      return this.#report(
        'Warning',
        'OrphanEIP',
        `${what} belongs to no claim, and is ${bindingText(orphan)}; unbind it by hand`,
      );
    }
    if (this.#deps.isRebuilding?.() === true) return;
    if (settings.isDryRun) return this.#report('Warning', 'OrphanEIP', `${what} belongs to no claim: dry run`);
    try {
      const [now] = await cloud.eips.describe({ eipIds: [orphan.eipId] }, contextOf(signal));
      const still =
        now === undefined ? [] : evaluateEipDrift(leader.clusterId, claimCache.values(), mapOf(now)).orphans;
      if (still[0]?.status !== 'UNBIND' || (await this.#hasClaim(orphan, signal))) return;
      await cloud.tasks.settle(await cloud.eips.release(orphan.eipId, contextOf(signal)), contextOf(signal));
      log.info('orphaned EIP released', { eipId: orphan.eipId, publicIp: orphan.publicIp });
      this.#report('Normal', 'OrphanEIPReleased', `${what} belonged to no claim and is released`);
    } catch (error) {
      signal.throwIfAborted();
      if (isKubeError(error)) return log.warn('the claim of an orphaned EIP cannot be read', { what, error });
      if (!isCloudError(error)) throw error;
      this.#report('Warning', 'OrphanEIP', `${what} belongs to no claim and could not be released: ${error.message}`);
    }
  }

  /** Reads the claim of the EIP's tag from the API server: a broken list lacks claims that exist. */
  async #hasClaim({ tags }: Eip, signal: AbortSignal): Promise<boolean> {
    const tag = tags[EIP_TAG.claim] ?? '';
    const [namespace, name, ...rest] = tag.split('/');
    if (namespace === undefined || namespace === '' || !name || rest.length > 0 || isShortened(tag)) return false;
    return (await this.#deps.kube.get(EIP_CLAIMS, { namespace, name }, signal)) !== undefined;
  }

  #report(type: 'Normal' | 'Warning', reason: 'OrphanEIP' | 'OrphanEIPReleased', message: string): void {
    const involved = { apiVersion: 'v1', kind: 'Namespace', name: this.#deps.settings.namespace };
    this.#deps.events.record({ involved, type, reason, message });
  }
}

function mapOf(eip: Eip): ReadonlyMap<string, Eip> {
  return new Map([[eip.eipId, eip]]);
}

/** Builds the context of a call: lowest priority, because no Pod waits for it. */
function contextOf(signal: AbortSignal): CallContext {
  return { priority: 'gc', owner: 'audit', signal, timeoutMs: CALL_TIMEOUT_MS };
}
