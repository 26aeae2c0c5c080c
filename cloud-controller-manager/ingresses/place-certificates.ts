import type { DesiredCertificate, DesiredRuleListener } from '../balancers/desired-rules.ts';
import { type Notice, remark } from '../balancers/notice.ts';

/**
 * Puts the ids of the cloud in the place of certificates of Secrets. One without an id becomes `asIs`: what its domain has
 * stays.
 * @param ids by hash
 * @param refused ids that may not be named
 */
export function placeCertificates(
  listeners: readonly DesiredRuleListener[],
  ids: ReadonlyMap<string, string>,
  refused: ReadonlySet<string> = new Set(),
): readonly DesiredRuleListener[] {
  const placed = (certificate: DesiredCertificate): DesiredCertificate => {
    if (certificate.kind === 'existing' && certificate.ids.some((id) => refused.has(id))) return { kind: 'asIs' };
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

/** Returns the ids of certificates that listeners name. */
export function namedIdsOf(listeners: readonly DesiredRuleListener[]): readonly string[] {
  const all = listeners.flatMap(({ rules }) => rules.map(({ certificate }) => certificate));
  return [...new Set(all.flatMap((one) => (one?.kind === 'existing' ? one.ids : [])))];
}

/** Returns what an Ingress has to know that names certificates which may not be named. */
export function noticesOfRefused(
  listeners: readonly DesiredRuleListener[],
  refused: ReadonlySet<string>,
): readonly Notice[] {
  return namedIdsOf(listeners)
    .filter((id) => refused.has(id))
    .map((id) =>
      remark(
        'CertificateRefused',
        `the certificate ${id} is of a Secret of an Ingress, or that is not known, and is not used by its id; name the Secret in spec.tls, or upload one by hand. What its hosts have stays as it is`,
      ),
    );
}

/** Has a plan made again at the latest when certificates are tried again that the cloud did not take. */
export function withRetry<P extends { readonly afterMs?: number }>(plan: P, ensured: { readonly afterMs?: number }): P {
  const { afterMs } = ensured;
  return afterMs === undefined ? plan : { ...plan, afterMs: Math.min(afterMs, plan.afterMs ?? afterMs) };
}
