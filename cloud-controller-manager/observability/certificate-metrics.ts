import { type MetricFactory, MS_PER_S } from '../../observability/metric-factory.ts';

/** What became of a certificate. `refused`: the cloud does not take it; `kept`: something forbids its deletion. */
type CertificateOutcome = 'uploaded' | 'refused' | 'deleted' | 'kept' | 'failed';

/** Callbacks of what keeps certificates. */
export type CertificatesObserver = {
  onOutcome(outcome: CertificateOutcome): void;
  /** After each sweep: how many certificates of this cluster the account has. */
  onSwept(counts: { readonly used: number; readonly unused: number }): void;
  /** Sets the source of how many Secrets are in which state; read at each scrape. */
  showSecrets(count: () => ReadonlyMap<string, number>): void;
  /** Sets the source of the expiries of what Ingresses use, milliseconds since the epoch; read at each scrape. */
  showExpiry(expiriesMs: () => readonly number[]): void;
};

/** Counts what happens to certificates of Ingresses. */
export function createCertificatesObserver(factory: MetricFactory): CertificatesObserver {
  const outcomes = factory.counter(
    'certificate_outcomes_total',
    'What was done about certificates of Secrets of Ingresses: uploaded, refused (the cloud does not take it), deleted, kept (something forbids its deletion), failed.',
    ['outcome'],
  );
  const swept = factory.gauge(
    'certificates',
    'Certificates of Secrets that the last sweep found in the account with the tags of this cluster, used and unused.',
    ['state'],
  );
  let source: () => readonly number[] = () => [];
  let countSecrets: () => ReadonlyMap<string, number> = () => new Map();
  factory.gauge(
    'ingress_secrets',
    'Secrets that Ingresses name, by what is known of them: found, missing, forbidden, unknown (not read yet), unkept (no room).',
    ['state'],
    (gauge) => {
      for (const [state, count] of countSecrets()) gauge.set({ state }, count);
    },
  );
  factory.gauge(
    'certificate_expiry_timestamp_seconds',
    'When the first certificate of a Secret expires that an Ingress uses, seconds since the epoch; 0: none is used.',
    [],
    (gauge) => {
      const expiriesMs = source();
      gauge.set(expiriesMs.length === 0 ? 0 : expiriesMs.reduce((a, b) => Math.min(a, b)) / MS_PER_S);
    },
  );
  return {
    onOutcome: (outcome) => outcomes.inc({ outcome }),
    onSwept: ({ used, unused }) => {
      swept.set({ state: 'used' }, used);
      swept.set({ state: 'unused' }, unused);
    },
    showSecrets: (count) => {
      countSecrets = count;
    },
    showExpiry: (expiriesMs) => {
      source = expiriesMs;
    },
  };
}
