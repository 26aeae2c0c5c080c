import { X509Certificate } from 'node:crypto';
import { type CertificatePair, type CertificateSpec, makeCertificate } from '../../runtime/make-certificate.ts';
import { type CertificateSet, parseCertificate } from './certificate-set.ts';

/** What the certificates of a program have to say. */
export type WantedCertificates = {
  /** Name of the program: common name of the server, and the beginning of that of authorities. */
  readonly program: string;
  /** DNS names and addresses by which clients call the server. */
  readonly names: readonly string[];
  /** Common name of the client certificate that is made too; absent: none. */
  readonly client?: string;
};

/** A complete set. */
export type CompleteSet = CertificateSet & { readonly authority: CertificatePair; readonly server: CertificatePair };

/** The set to use, and why it differs from what was found; no reasons: it does not. */
type CertificateDecision = { readonly set: CompleteSet; readonly reasons: readonly string[] };

const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;
/** Certificates begin earlier than now: the clock of a client may be late. */
const EARLIER_MS = DAY_MS;
/** How long an authority lasts: people put it into kube-scheduler's configuration. */
const AUTHORITY_MS = 10 * YEAR_MS;
/** The next authority is announced when so much is left of the one that signs, and signs when so much is left. */
const ANNOUNCE_MS = 2 * YEAR_MS;
const PROMOTE_MS = YEAR_MS;
const SERVER_MS = 90 * DAY_MS;
const RENEW_SERVER_MS = 30 * DAY_MS;

/**
 * Decides which certificates a program uses. What is good stays; what is missing, damaged, ended, not valid yet, or about
 * to end is replaced. An authority is announced a year before it signs, and stays trusted until it ends, so no client
 * meets a certificate of an authority that it does not trust.
 * @param nowMs the earlier one of the clocks that are known: by it something has ended, or ends soon
 * @param latestMs the later one: by it something is not valid yet
 */
export function decideCertificates(
  found: CertificateSet,
  wanted: WantedCertificates,
  nowMs: number,
  latestMs: number = nowMs,
): CertificateDecision {
  const reasons: string[] = [];
  const times: Times = { nowMs, latestMs };
  const authorities = decideAuthorities(found, wanted, times, reasons);
  const { authority } = authorities;
  const issue = (pair: CertificatePair | undefined, spec: CertificateSpec, renewMs: number, why: string) => {
    const fault = faultOf(pair, spec, authority, times, renewMs);
    if (pair !== undefined && fault === undefined) return pair;
    reasons.push(`${why}: ${fault ?? 'missing or damaged'}`);
    return makeCertificate(spec, authority);
  };
  const endMs = validityOf(authority).endMs;
  const span = { notBeforeMs: nowMs - EARLIER_MS, notAfterMs: Math.min(endMs, nowMs + SERVER_MS) };
  const server = issue(
    found.server,
    { commonName: wanted.program, use: 'server', names: wanted.names, ...span },
    RENEW_SERVER_MS,
    'certificate of the server',
  );
  if (wanted.client === undefined) return { set: { ...authorities, server }, reasons };
  const ofClient = { commonName: wanted.client, use: 'client', ...span, notAfterMs: endMs } as const;
  const client = issue(found.client, ofClient, PROMOTE_MS / 2, 'certificate of the client');
  return { set: { ...authorities, server, client }, reasons };
}

/** The earliest and the latest of the clocks that are known: only what all of them say counts. */
type Times = { readonly nowMs: number; readonly latestMs: number };

/** Why something is replaced because of its times: the end of such a reason. */
export const OUT_OF_TIME = 'ended, or not valid yet';

type Authorities = Pick<CompleteSet, 'authority' | 'next' | 'earlier'>;

function decideAuthorities(
  { authority, next, earlier }: CertificateSet,
  { program }: WantedCertificates,
  { nowMs, latestMs }: Times,
  reasons: string[],
): Authorities {
  const make = (): CertificatePair => {
    const times = { notBeforeMs: nowMs - EARLIER_MS, notAfterMs: nowMs + AUTHORITY_MS };
    return makeCertificate({ commonName: `${program}-ca-${Math.floor(nowMs / 1_000)}`, use: 'authority', ...times });
  };
  const living = (pair: CertificatePair | undefined): pair is CertificatePair =>
    pair !== undefined && isValid(pair.cert, { nowMs, latestMs });
  const stayTrusted = (certs: readonly string[]): readonly string[] => {
    const kept = certs.filter((cert) => (validity(cert)?.endMs ?? 0) > nowMs);
    if (kept.length < certs.length) reasons.push('authority: an earlier one has ended');
    return kept;
  };
  const leftMs = living(authority) ? validityOf(authority).endMs - nowMs : 0;
  const following = living(next) ? { next } : {};
  if (living(authority) && (leftMs > PROMOTE_MS || !living(next))) {
    if (leftMs > ANNOUNCE_MS || living(next)) return { authority, ...following, earlier: stayTrusted(earlier) };
    reasons.push('authority: the next one is announced');
    return { authority, next: make(), earlier: stayTrusted(earlier) };
  }
  const trusted = [...(authority === undefined ? [] : [authority.cert]), ...earlier];
  if (living(next)) {
    reasons.push('authority: the next one signs now');
    return { authority: next, earlier: stayTrusted(trusted) };
  }
  reasons.push(authority === undefined ? 'authority: missing or damaged' : `authority: ${OUT_OF_TIME}`);
  return { authority: make(), earlier: stayTrusted(trusted) };
}

/** Returns why a certificate has to be replaced; undefined when it is good. */
function faultOf(
  pair: CertificatePair | undefined,
  { names = [], commonName }: CertificateSpec,
  authority: CertificatePair,
  { nowMs, latestMs }: Times,
  renewMs: number,
): string | undefined {
  if (pair === undefined) return 'missing or damaged';
  const certificate = new X509Certificate(pair.cert);
  if (!isValid(pair.cert, { nowMs, latestMs })) return OUT_OF_TIME;
  const lastMs = Math.min(validityOf(pair).endMs, Number.MAX_SAFE_INTEGER);
  // One that ends with its authority cannot be made longer.
  if (lastMs - nowMs < renewMs && lastMs < validityOf(authority).endMs) return 'it ends soon';
  if (!certificate.verify(new X509Certificate(authority.cert).publicKey)) return 'another authority signs now';
  if (certificate.subject !== `CN=${commonName}`) return 'it has another common name';
  const lacking = names.filter(
    (name) =>
      certificate.checkHost(name, { subject: 'never' }) === undefined && certificate.checkIP(name) === undefined,
  );
  return lacking.length === 0 ? undefined : `it does not name ${lacking.join(', ')}`;
}

type Validity = { readonly beginMs: number; readonly endMs: number };

function validity(cert: string): Validity | undefined {
  const certificate = parseCertificate(cert);
  if (certificate === undefined) return undefined;
  return { beginMs: certificate.validFromDate.getTime(), endMs: certificate.validToDate.getTime() };
}

function validityOf({ cert }: CertificatePair): Validity {
  return validity(cert) ?? { beginMs: 0, endMs: 0 };
}

function isValid(cert: string, { nowMs, latestMs }: Times): boolean {
  const { beginMs, endMs } = validity(cert) ?? { beginMs: 0, endMs: 0 };
  return beginMs <= latestMs && nowMs < endMs;
}
