import { batchesOf } from '../../cloud/batches.ts';
import { CERTIFICATES_PER_QUESTION, type Certificate } from '../../cloud/certificates.ts';
import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { type OrphanKind, OrphanSweep } from '../../cloud/orphan-sweep.ts';
import { CLUSTER_TAG } from '../../crd/cloud-tags.ts';
import type { CertificateDeps, CertificateUploads } from './keep-certificates.ts';
import { hashOf } from './owned-certificate.ts';

/** How often unused certificates are looked for; one found unused in two sweeps this far apart is deleted. */
const PERIOD_MS = 600_000;
/** One that the cloud does not delete is tried again after so long. */
const REFUSED_MS = 3_600_000;
/** Most deletions of one sweep while an Ingress uses any, beside as many as were uploaded: deletions keep pace with renewals. */
const MAX_DELETIONS = 20;

type Uploads = Pick<CertificateUploads, 'learn' | 'isUsed' | 'delete' | 'takeUploads'>;

/**
 * Deletes certificates of this cluster that no Ingress and no load balancer uses any more, as after a renewal, until aborted;
 * ends then. It also gives `CertificateUploads` what the cloud has now, so that one which a person has deleted is uploaded again.
 * @param mayAct whether all Ingresses are known and planned, and no other controller keeps load balancers
 */
export async function sweepCertificates(
  deps: CertificateDeps,
  uploads: Uploads,
  mayAct: () => boolean,
  signal: AbortSignal,
): Promise<void> {
  const { clock, config, metrics } = deps;
  const context: CallContext = { priority: 'gc', owner: 'certificates', signal, timeoutMs: config.cloudTimeoutMs };
  /** Uploads for which no certificate was deleted yet. */
  let uploaded = 0;
  const kind = sweptCertificates(deps, uploads, (own) => {
    uploaded += uploads.takeUploads();
    // Once no Ingress uses any, an uninstallation may wait for all of them.
    return own.some((one) => uploads.isUsed(one)) ? MAX_DELETIONS + uploaded : Number.POSITIVE_INFINITY;
  });
  const sweep = new OrphanSweep(kind, deps, PERIOD_MS);
  try {
    for (;;) {
      await clock.sleep(PERIOD_MS, signal);
      const swept = mayAct() ? await sweep.sweep(context) : undefined;
      if (swept?.kind !== 'done') continue;
      const { length: unused } = swept.orphans;
      showCertificates(metrics, swept.own.length - unused, unused);
      const tried = [...swept.outcomes.values()].filter((one) => one.kind !== 'kept' && one.kind !== 'waiting').length;
      uploaded -= Math.max(0, tried - MAX_DELETIONS);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    showCertificates(metrics, 0, 0);
  }
}

function sweptCertificates(
  { cloud, clock, config, log, metrics }: CertificateDeps,
  uploads: Uploads,
  limitOf: (own: readonly Certificate[]) => number,
): OrphanKind<Certificate> {
  /** By id: until when it is not tried again; monotonic milliseconds. */
  const refusedUntilMs = new Map<string, number>();
  /** Those that no load balancer uses, as the cloud answered in this sweep. */
  let unused = new Set<string>();
  let limit = 0;
  const isOurs = (one: Certificate): boolean => hashOf(config.clusterId, one) !== undefined;
  return {
    skipMessage: 'unused certificates were not looked for',
    idOf: ({ certId }) => certId,
    createdAtMs: ({ createdAtMs }) => createdAtMs,
    list: async (context) => {
      const query = { tag: { key: CLUSTER_TAG, value: config.clusterId } };
      const { certificates, isConsistent } = await cloud.certificates.find(query, context);
      if (!isConsistent) return 'SweepInconsistent';
      uploads.learn(certificates);
      const own = certificates.filter(isOurs);
      const unplanned = own.filter((one) => !uploads.isUsed(one)).map(({ certId }) => certId);
      // The cloud may delete what is in use: its load balancers are asked.
      unused = new Set();
      for (const certIds of batchesOf(unplanned, CERTIFICATES_PER_QUESTION))
        for (const [certId, its] of await cloud.certificates.usersOf(certIds, context))
          if (its.length === 0) unused.add(certId);
      limit = limitOf(own);
      const nowMs = clock.monotonicMs();
      for (const [certId, untilMs] of refusedUntilMs) if (untilMs <= nowMs) refusedUntilMs.delete(certId);
      return certificates;
    },
    isOurs,
    ownerCheck: () => (one) => uploads.isUsed(one) || !unused.has(one.certId),
    limit: () => limit,
    whyKept: ({ certId }) => (refusedUntilMs.has(certId) ? 'the cloud refused its deletion' : undefined),
    lookAgain: async (one) => one,
    // `delete` looks whether it is used by now; the same one is uploaded only afterwards.
    remove: async (one, context) => ({ kind: (await uploads.delete(one, context)) ? 'removed' : 'spared' }),
    report: ({ certId }, outcome) => {
      if (outcome.kind === 'removed') {
        log.info('a certificate that no Ingress uses any more is deleted', { certId });
        metrics.certificateOutcomes.inc({ outcome: 'deleted' });
      }
      if (outcome.kind !== 'failed') return;
      const { error } = outcome;
      const isKept = isCloudError(error, 'never');
      if (isKept) refusedUntilMs.set(certId, clock.monotonicMs() + REFUSED_MS);
      log.warn('a certificate that no Ingress uses any more stays', { certId, error });
      metrics.certificateOutcomes.inc({ outcome: isKept ? 'kept' : 'failed' });
    },
  };
}

function showCertificates({ certificates }: CertificateDeps['metrics'], used: number, unused: number): void {
  certificates.set({ state: 'used' }, used);
  certificates.set({ state: 'unused' }, unused);
}
