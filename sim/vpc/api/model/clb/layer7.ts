import { ApiError } from '../api-error.ts';
import type { CertificateBook } from '../certificate-book.ts';
import type { Params } from '../params.ts';
import type {
  ModelCertificates,
  ModelLayer7,
  ModelListener,
  ModelLoadBalancer,
  ModelRule,
  ModelTarget,
} from './types.ts';

const MOST_CERTIFICATES = 10;
const MODES = ['UNIDIRECTIONAL', 'MUTUAL'] as const;

/** The part of a listener of HTTP or HTTPS that others do not have. @throws ApiError InvalidParameterValue */
export function layer7Of(listener: ModelListener): ModelLayer7 {
  if (listener.layer7 !== undefined) return listener.layer7;
  throw new ApiError('InvalidParameterValue', `${listener.listenerId} (${listener.protocol}) has no rules.`);
}

/** A rule of a listener. @throws ApiError InvalidParameter.LocationNotFound */
export function ruleOf(listener: ModelListener, ruleId: string): ModelRule {
  const rule = listener.layer7?.rules.get(ruleId);
  if (rule !== undefined) return rule;
  throw new ApiError(
    'InvalidParameter.LocationNotFound',
    `The rule ${ruleId} of ${listener.listenerId} (${listener.protocol}) does not exist.`,
  );
}

/** A load balancer with a rule replaced; without it, when the listener or rule is gone meanwhile, as it was. */
export function withRule(
  balancer: ModelLoadBalancer,
  listenerId: string,
  ruleId: string,
  change: (rule: ModelRule) => ModelRule,
): ModelLoadBalancer {
  const listener = balancer.listeners.get(listenerId);
  const rule = listener?.layer7?.rules.get(ruleId);
  if (listener?.layer7 === undefined || rule === undefined) return balancer;
  const rules = new Map(listener.layer7.rules).set(ruleId, change(rule));
  const changed = { ...listener, layer7: { ...listener.layer7, rules } };
  return { ...balancer, listeners: new Map(balancer.listeners).set(listenerId, changed) };
}

/** All targets of a listener, those of its rules too. */
export function allTargets({ targets, layer7 }: ModelListener): readonly ModelTarget[] {
  return [targets, ...[...(layer7?.rules.values() ?? [])].map((rule) => rule.targets)].flatMap((one) => [
    ...one.values(),
  ]);
}

/** The ids of all certificates that a load balancer uses. */
export function certificatesOf({ listeners }: ModelLoadBalancer): ReadonlySet<string> {
  const used = [...listeners.values()].flatMap(({ layer7 }) => [
    layer7?.certificates,
    ...(layer7?.domains.values() ?? []),
  ]);
  return new Set(
    used.flatMap((one) => [...(one?.certIds ?? []), ...(one?.caCertId === undefined ? [] : [one.caCertId])]),
  );
}

/** What of the account decides which certificates may be used. */
type Account = { readonly certificates: CertificateBook; readonly nowMs: number };

/** Reads Certificate or MultiCertInfo; undefined when neither is given. @throws ApiError */
export function readCertificates(state: Account, params: Params): ModelCertificates | undefined {
  const one = params.part('Certificate', ['CertId'], ['SSLMode', 'CertCaId']);
  const several = params.part('MultiCertInfo', ['SSLMode', 'CertList'], []);
  if (one !== undefined && several !== undefined) throw refused('Certificate and MultiCertInfo exclude each other.');
  const part = one ?? several;
  if (part === undefined) return undefined;
  const isMutual = part.choice('SSLMode', MODES, 'UNIDIRECTIONAL') === 'MUTUAL';
  const listed = several?.parts('CertList', MOST_CERTIFICATES, ['CertId'], []).map((cert) => cert.text('CertId')) ?? [];
  const typeOf = (certId: string): string | undefined =>
    state.certificates.all().find((known) => known.certId === certId)?.type;
  const authorities =
    one === undefined ? listed.filter((id) => typeOf(id) === 'CA') : [one.text('CertCaId')].filter(Boolean);
  const certIds = one === undefined ? listed.filter((id) => typeOf(id) !== 'CA') : [one.text('CertId')];
  if (certIds.length === 0) throw refused('A server certificate is needed.');
  if (authorities.length !== (isMutual ? 1 : 0))
    throw refused('SSLMode MUTUAL, and no other, needs the one of an authority.');
  const servers = certIds.map((id) => state.certificates.usable(id, 'SVR', state.nowMs));
  if (new Set(servers.map(({ algorithm }) => algorithm)).size < servers.length) {
    throw refused('Server certificates of one domain must have different algorithms.');
  }
  for (const id of authorities) state.certificates.usable(id, 'CA', state.nowMs);
  const [caCertId] = authorities;
  return { certIds, ...(caCertId === undefined ? {} : { caCertId }) };
}

/** Certificates as the API writes them. */
export function wireCertificates({ certIds, caCertId }: ModelCertificates) {
  const [CertId = '', ...ExtCertIds] = certIds;
  return {
    SSLMode: caCertId === undefined ? MODES[0] : MODES[1],
    CertId,
    CertCaId: caCertId ?? '',
    ExtCertIds,
  };
}

function refused(text: string): ApiError {
  return new ApiError('InvalidParameterValue', text);
}
