import { CERTIFICATES_PER_QUESTION, type Certificate } from '../../cloud/certificates.ts';
import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { OrphanTracker } from '../../cloud/orphan-tracker.ts';
import { CLUSTER_TAG } from '../../crd/cloud-tags.ts';
import type { CertificateDeps, CertificateKeeper } from './keep-certificates.ts';
import { hashOf } from './owned-certificate.ts';

/** So often it is looked for unused ones. */
const PERIOD_MS = 600_000;
/** One that is unused so long apart, twice, is deleted. */
const APART_MS = 600_000;
/** What may be deleted: it has been there for so long, by the clock of the cloud. */
const MIN_AGE_MS = 900_000;
/** One that the cloud does not delete is tried again after so long. */
const REFUSED_MS = 3_600_000;
/** Most deletions of one sweep while an Ingress uses any, beside as many as were uploaded: deletions keep pace with renewals. */
const MAX_DELETIONS = 20;

/**
 * Deletes certificates of this cluster that no Ingress and no load balancer uses any more, as after a renewal. It also gives
 * the keeper what the cloud has now, so that one which a person has deleted is uploaded again.
 */
export class CertificateSweep {
  readonly #deps: CertificateDeps;
  readonly #keeper: Pick<CertificateKeeper, 'learn' | 'isUsed' | 'delete' | 'takeUploads'>;
  readonly #mayAct: () => boolean;
  readonly #tracker = new OrphanTracker<Certificate>(({ certId }) => certId);
  /** By id: until when it is not tried again; monotonic milliseconds. */
  readonly #refusedUntilMs = new Map<string, number>();
  /** Uploads for which no certificate was deleted yet. */
  #uploaded = 0;

  /** @param mayAct whether all Ingresses are known and planned, and no other controller keeps load balancers */
  constructor(
    deps: CertificateDeps,
    keeper: Pick<CertificateKeeper, 'learn' | 'isUsed' | 'delete' | 'takeUploads'>,
    mayAct: () => boolean,
  ) {
    this.#deps = deps;
    this.#keeper = keeper;
    this.#mayAct = mayAct;
  }

  /** Sweeps until aborted; ends then. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, config, log, metrics } = this.#deps;
    const context: CallContext = { priority: 'gc', owner: 'certificates', signal, timeoutMs: config.cloudTimeoutMs };
    while (!signal.aborted) {
      await clock.sleep(PERIOD_MS, signal).catch(() => {});
      if (signal.aborted || !this.#mayAct()) continue;
      try {
        await this.#sweep(context);
      } catch (error) {
        if (!signal.aborted && !isCloudError(error)) throw error;
        if (!signal.aborted) log.warn('unused certificates were not looked for', { error });
      }
    }
    metrics.certificates.onSwept({ used: 0, unused: 0 });
  }

  async #sweep(context: CallContext): Promise<void> {
    const { cloud, clock, config, log, metrics } = this.#deps;
    const query = { tag: { key: CLUSTER_TAG, value: config.clusterId } };
    const { certificates, isConsistent } = await cloud.certificates.find(query, context);
    if (!isConsistent) {
      log.warn('certificates changed while they were listed; unused ones are looked for the next time');
      return;
    }
    this.#keeper.learn(certificates);
    const own = certificates.filter((one) => hashOf(config.clusterId, one) !== undefined);
    const unplanned = own.filter((one) => !this.#keeper.isUsed(one) && this.#isOld(one));
    const unused = await this.#withoutUsers(unplanned, context);
    metrics.certificates.onSwept({ used: own.length - unused.length, unused: unused.length });
    const nowMs = clock.monotonicMs();
    const due = this.#tracker.note(unused, nowMs, APART_MS);
    for (const [certId, untilMs] of this.#refusedUntilMs) if (untilMs <= nowMs) this.#refusedUntilMs.delete(certId);
    const open = due.filter(({ certId }) => !this.#refusedUntilMs.has(certId));
    this.#uploaded += this.#keeper.takeUploads();
    // Once no Ingress uses any, an uninstallation may wait for all of them.
    const most = own.some((one) => this.#keeper.isUsed(one)) ? MAX_DELETIONS + this.#uploaded : open.length;
    const some = open.slice(0, most);
    this.#uploaded -= Math.max(0, some.length - MAX_DELETIONS);
    for (const certificate of some) await this.#delete(certificate, context);
  }

  /** The cloud may delete what is in use: its load balancers are asked. */
  async #withoutUsers(certificates: readonly Certificate[], context: CallContext): Promise<readonly Certificate[]> {
    const unused: Certificate[] = [];
    for (let at = 0; at < certificates.length; at += CERTIFICATES_PER_QUESTION) {
      const some = certificates.slice(at, at + CERTIFICATES_PER_QUESTION);
      const ids = some.map(({ certId }) => certId);
      const users = await this.#deps.cloud.certificates.usersOf(ids, context);
      unused.push(...some.filter(({ certId }) => users.get(certId)?.length === 0));
    }
    return unused;
  }

  async #delete(certificate: Certificate, context: CallContext): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    const { certId } = certificate;
    try {
      if (!(await this.#keeper.delete(certificate, context))) return;
      log.info('a certificate that no Ingress uses any more is deleted', { certId });
      metrics.certificates.onOutcome('deleted');
    } catch (error) {
      if (!isCloudError(error)) throw error;
      context.signal.throwIfAborted();
      const isKept = isCloudError(error, 'never');
      if (isKept) this.#refusedUntilMs.set(certId, clock.monotonicMs() + REFUSED_MS);
      log.warn('a certificate that no Ingress uses any more stays', { certId, error });
      metrics.certificates.onOutcome(isKept ? 'kept' : 'failed');
    }
  }

  #isOld({ createdAtMs }: Certificate): boolean {
    return createdAtMs > 0 && this.#deps.clock.nowMs() - createdAtMs >= MIN_AGE_MS;
  }
}
