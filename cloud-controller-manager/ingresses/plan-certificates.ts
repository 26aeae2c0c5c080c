import { describeValue } from '../../runtime/decode.ts';
import type { DesiredCertificate } from '../balancers/desired-rules.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import { MAX_ITEMS_OF_PLAN, refuseProducts } from '../balancers/plan-bound.ts';
import { checkValidity, type OwnCertificate, parseOwnCertificate } from './own-certificate.ts';
import type { TlsEntry } from './read-ingress.ts';
import type { CertificateEntry } from './rule-annotations.ts';

/** A Secret, as far as it can be read. `unknown`: it is not known yet whether it is there; `unkept`: it is above the budget. */
export type SecretFacts =
  | { readonly kind: 'missing' | 'forbidden' | 'unknown' | 'unkept' }
  /** Values of `data` are base64. */
  | { readonly kind: 'found'; readonly type: string; readonly data: Readonly<Record<string, string>> };

/** What certificates are made of. */
type CertificateSources = {
  readonly tls: readonly TlsEntry[];
  /** Of the annotation; absent: there is none. */
  readonly annotated?: readonly CertificateEntry[];
  /** By name, in the namespace of the Ingress. */
  readonly secretOf: (name: string) => SecretFacts;
  readonly nowMs: number;
};

/** The certificates of hosts. */
export type CertificatePlan = {
  /** Whether any host asks for one. */
  readonly isAsked: boolean;
  /** Of hosts without an entry of their own. */
  readonly defaultCertificate?: DesiredCertificate;
  /** Undefined: the host has none. */
  readonly certificateOf: (host: string) => DesiredCertificate | undefined;
  /** Says which hosts of certificates no rule has, of the hosts of all rules. */
  readonly noticesOfUnused: (ruleHosts: Iterable<string>) => readonly Notice[];
  /** What has to be uploaded, by hash. */
  readonly uploads: ReadonlyMap<string, OwnCertificate>;
  readonly notices: readonly Notice[];
};

const AS_IS: DesiredCertificate = { kind: 'asIs' };
const MAX_SECRET_CHARS = 100_000;
/** 14 days: what renews certificates by itself does it before. */
const SOON_MS = 14 * 86_400_000;
const ID = /^[A-Za-z0-9]{8}$/;

/** Plans which certificate each host has. */
export function planCertificates({ tls, annotated, secretOf, nowMs }: CertificateSources): CertificatePlan {
  const notices: Notice[] = [];
  const uploads = new Map<string, OwnCertificate>();
  let compared = 0;
  const byHost = new Map<string, DesiredCertificate>();
  if (annotated !== undefined && tls.length > 0) {
    const message = 'spec.tls and the annotation ingress.cloud.tencent.com/certificate are both there; remove one';
    notices.push(blocking('AnnotationInvalid', message));
  }
  for (const { hosts, ids } of annotated ?? []) add(hosts, () => ({ kind: 'existing', ids }));
  for (const { hosts, secretName } of tls) add(hosts, () => ofSecret(secretName, hosts));
  const cure = 'use certificates with fewer names, or divide the hosts between several Ingresses';
  const lengths = { 'names of certificates, counted for each of their hosts,': compared };
  notices.push(...refuseProducts('IngressRefused', [{ lengths, cure }]));
  const defaultCertificate = byHost.get('');
  return {
    isAsked: byHost.size > 0,
    ...(defaultCertificate === undefined ? {} : { defaultCertificate }),
    certificateOf: (host) => byHost.get(host) ?? byHost.get(wildcardOf(host)) ?? defaultCertificate,
    noticesOfUnused: (ruleHosts) => {
      const used = new Set(['', ...ruleHosts].flatMap((host) => [host, wildcardOf(host)]));
      const unused = [...byHost.keys()].filter((host) => !used.has(host));
      if (unused.length === 0) return [];
      const message = `hosts ${shown(unused)}: no rule has such a host, so that nothing is served with their certificates; correct the host there or in a rule`;
      return [remark('CertificateRefused', message)];
    },
    uploads,
    notices,
  };

  /** An entry without hosts is that of the host ''. Hosts of rules are in lower case, and names of hosts have no case. */
  function add(hosts: readonly string[], make: () => DesiredCertificate): void {
    const certificate = make();
    for (const host of hosts.length === 0 ? [''] : hosts.map((one) => one.toLowerCase())) {
      if (!byHost.has(host)) byHost.set(host, certificate);
      else {
        const name =
          host === '' ? 'there are two entries without hosts' : `host ${describeValue(host)} is in two entries`;
        notices.push(blocking('IngressInvalid', `certificates: ${name}; leave one of them`));
      }
    }
  }

  function ofSecret(name: string, hosts: readonly string[]): DesiredCertificate {
    const secret = name === '' ? undefined : secretOf(name);
    compared += hosts.length * (secret?.kind === 'found' ? nameCountOf(secret) : 0);
    if (compared > MAX_ITEMS_OF_PLAN) return AS_IS;
    const read = secret === undefined ? 'the entry of spec.tls names no Secret' : readSecret(secret, hosts, nowMs);
    const place = `${hosts.length === 0 ? 'default certificate' : `hosts ${shown(hosts)}`}: ${name === '' ? '' : `Secret ${describeValue(name)}: `}`;
    if (typeof read === 'string') {
      notices.push(remark('CertificateRefused', `${place}${read}; what the host has stays as it is`));
      return AS_IS;
    }
    if ('kind' in read) return read;
    if (read.expiresAtMs - nowMs < SOON_MS) {
      notices.push(
        remark(
          'CertificateExpires',
          `${place}the certificate expires at ${read.expiresAt}; write a new one into the Secret`,
        ),
      );
    }
    uploads.set(read.hash, read);
    return { kind: 'own', hash: read.hash };
  }
}

const SHOWN_HOSTS = 3;

function shown(hosts: readonly string[]): string {
  const more = hosts.length > SHOWN_HOSTS ? ` and ${hosts.length - SHOWN_HOSTS} more` : '';
  return `${hosts.slice(0, SHOWN_HOSTS).map(describeValue).join(', ')}${more}`;
}

/** A certificate of a wildcard serves the hosts right below it. */
function wildcardOf(host: string): string {
  return host.startsWith('*') ? host : host.replace(/^[^.]+/, '*');
}

function readSecret(
  secret: SecretFacts,
  hosts: readonly string[],
  nowMs: number,
): DesiredCertificate | OwnCertificate | string {
  if (secret.kind === 'found') return readData(secret, hosts, nowMs);
  if (secret.kind === 'unknown') return AS_IS;
  if (secret.kind === 'unkept')
    return 'there is no room for it: the Secrets that Ingresses name are 64 MiB together, and those of its namespace more than their share; let Ingresses of the namespace name fewer or smaller ones';
  if (secret.kind === 'missing') return 'there is no such Secret; make it, or name another';
  return 'it may not be read; grant get of it by a Role of its namespace, as docs/reference/ingress-annotations.md says';
}

function readData(
  secret: FoundSecret,
  hosts: readonly string[],
  nowMs: number,
): DesiredCertificate | OwnCertificate | string {
  const { type, data } = secret;
  if (data['qcloud_cert_id'] !== undefined) return readIds(data);
  if (type !== 'kubernetes.io/tls' && data['tls.crt'] === undefined)
    return 'it has neither qcloud_cert_id nor tls.crt and tls.key';
  if (data['qcloud_ca_cert_id'] !== undefined)
    return 'qcloud_ca_cert_id asks clients for certificates, and is for qcloud_cert_id alone; upload the certificate by hand, and name its id beside it';
  const own = ownOf(secret);
  if (typeof own === 'string') return own;
  const foreign = hosts.filter((host) => !own.isFor(host));
  return checkValidity(own, nowMs) ?? (foreign.length === 0 ? own : `the certificate is not for ${shown(foreign)}`);
}

type FoundSecret = Extract<SecretFacts, { readonly kind: 'found' }>;

/** What was parsed: an Ingress is planned each time that a Pod changes, and its Secrets are the same objects then. */
const PARSED = new WeakMap<FoundSecret, OwnCertificate | string>();

function nameCountOf(secret: FoundSecret): number {
  const own = secret.data['qcloud_cert_id'] === undefined ? ownOf(secret) : '';
  return typeof own === 'string' ? 0 : own.names;
}

/** Parses a Secret ahead, some milliseconds of work: a plan with many of them has them parsed then. */
export function parseSecret(secret: FoundSecret): void {
  if (secret.data['qcloud_cert_id'] === undefined) ownOf(secret);
}

function ownOf(secret: FoundSecret): OwnCertificate | string {
  const own = PARSED.get(secret) ?? parseOwnCertificate(textOf(secret.data, 'tls.crt'), textOf(secret.data, 'tls.key'));
  PARSED.set(secret, own);
  return own;
}

function readIds(data: Readonly<Record<string, string>>): DesiredCertificate | string {
  const ids = textOf(data, 'qcloud_cert_id')
    .split(',')
    .map((id) => id.trim());
  const caId = textOf(data, 'qcloud_ca_cert_id').trim();
  if (ids.length > 2 || !ids.every((id) => ID.test(id)) || new Set(ids).size !== ids.length)
    return 'qcloud_cert_id must be the id of a certificate, or two with a comma: of RSA and of ECC';
  if (caId !== '' && !ID.test(caId)) return 'qcloud_ca_cert_id must be the id of a certificate';
  return { kind: 'existing', ids, ...(caId === '' ? {} : { caId }) };
}

function textOf(data: Readonly<Record<string, string>>, key: string): string {
  return Buffer.from((data[key] ?? '').slice(0, MAX_SECRET_CHARS), 'base64').toString();
}
