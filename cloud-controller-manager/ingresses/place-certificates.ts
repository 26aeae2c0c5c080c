import type { DesiredCertificate, DesiredRuleListener } from '../balancers/desired-rules.ts';

/**
 * Puts the ids of the cloud in the place of certificates of Secrets. One without an id becomes `asIs`: what its domain has
 * stays.
 * @param ids by hash
 */
export function placeCertificates(
  listeners: readonly DesiredRuleListener[],
  ids: ReadonlyMap<string, string>,
): readonly DesiredRuleListener[] {
  const placed = (certificate: DesiredCertificate): DesiredCertificate => {
    if (certificate.kind !== 'own') return certificate;
    const id = ids.get(certificate.hash);
    return id === undefined ? { kind: 'asIs' } : { kind: 'existing', ids: [id] };
  };
  return listeners.map(({ rules, ...listener }) => ({
    ...listener,
    rules: rules.map(({ certificate, ...rule }) => ({
      ...rule,
      ...(certificate === undefined ? {} : { certificate: placed(certificate) }),
    })),
  }));
}

/** Has a plan made again at the latest when certificates are tried again that the cloud did not take. */
export function withRetry<P extends { readonly afterMs?: number }>(plan: P, ensured: { readonly afterMs?: number }): P {
  const { afterMs } = ensured;
  return afterMs === undefined ? plan : { ...plan, afterMs: Math.min(afterMs, plan.afterMs ?? afterMs) };
}
