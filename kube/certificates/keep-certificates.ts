import type { Clock } from '../../runtime/clock.ts';
import { recordOf } from '../../runtime/json.ts';
import type { Logger } from '../../runtime/log.ts';
import type { KubeClient, KubeObject, ObjectRef } from '../kube-client.ts';
import { isKubeError } from '../kube-error.ts';
import { SECRETS } from '../resource-types.ts';
import { type CertificateSet, readCertificateSet, renderCertificateSet } from './certificate-set.ts';
import { type CompleteSet, decideCertificates, OUT_OF_TIME, type WantedCertificates } from './decide-certificates.ts';

/** Whose certificates a Secret has: the name of the program. A Secret with data and without it belongs to another owner. */
const PROGRAM_ANNOTATION = 'tke.cloud.tencent.com/certificates-of';

/**
 * The certificates cannot be kept in their Secret.
 * - `MISSING`: there is no such Secret.
 * - `FOREIGN`: it has data that this program did not write.
 * - `CONTENDED`: other replicas wrote it again and again.
 */
class CertificateError extends Error {
  readonly code: 'MISSING' | 'FOREIGN' | 'CONTENDED';

  constructor(code: CertificateError['code'], message: string) {
    super(message);
    this.name = 'CertificateError';
    this.code = code;
  }
}

/** Where the certificates are kept, and what they say. */
type CertificateKeeperDeps = {
  readonly kube: Pick<KubeClient, 'get' | 'update' | 'serverMs'>;
  readonly secret: Required<ObjectRef>;
  readonly wanted: WantedCertificates;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly log: Logger;
};

/** Keeps certificates in a Secret that all replicas share. */
export type CertificateKeeper = {
  /**
   * Reads the Secret and returns its certificates. Makes those that are missing or about to end, by its own clock and the server's, and writes them, unless
   * another replica was faster: then its certificates are returned. Idempotent.
   * @throws CertificateError, KubeError
   */
  sync(): Promise<CompleteSet>;
};

/** Each other replica may win once for each kind of change. */
const MAX_ATTEMPTS = 10;

/** Opens the keeper; nothing is read yet. */
export function openCertificateKeeper(deps: CertificateKeeperDeps): CertificateKeeper {
  let last: CertificateSet | undefined;
  const memory: Memory = {};
  const sync = async (): Promise<CompleteSet> => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const set = await trySync(deps, last, memory);
      if (set === undefined) continue;
      last = set;
      return set;
    }
    throw new CertificateError('CONTENDED', `Secret ${nameOf(deps)} changes all the time: look who else writes it`);
  };
  return { sync };
}

/** What a replica remembers of its clock. */
type Memory = {
  /** When it replaced what had ended or was not valid yet, by its own wall clock. */
  replacedAtMs?: number;
  isSkewed?: boolean;
};

/** So long what another replica put in the place of ours stays, whatever its times are: clocks disagree. */
const REPLACE_AGAIN_MS = 86_400_000;
/** From so much on a clock is reported. Certificates begin a day before they are made. */
const SKEW_MS = 3_600_000;

function noteSkew({ log }: CertificateKeeperDeps, ownMs: number, serverMs: number | undefined, memory: Memory): void {
  const isSkewed = serverMs !== undefined && Math.abs(ownMs - serverMs) > SKEW_MS;
  if (isSkewed && memory.isSkewed !== true)
    log.error(
      'the clock of this machine and that of the API server differ: set it; certificates change only where both agree',
      {
        own: new Date(ownMs).toISOString(),
        server: new Date(serverMs).toISOString(),
      },
    );
  memory.isSkewed = isSkewed;
}

function isComplete(set: CertificateSet): set is CompleteSet {
  return set.authority !== undefined && set.server !== undefined;
}

/** One attempt; undefined when another replica wrote the Secret meanwhile. */
async function trySync(
  deps: CertificateKeeperDeps,
  last: CertificateSet | undefined,
  memory: Memory,
): Promise<CompleteSet | undefined> {
  const { kube, secret, wanted, clock, log } = deps;
  const object = await kube.get(SECRETS, secret);
  if (object === undefined) {
    const cure = `apply the manifests or the chart again, or: kubectl -n ${secret.namespace} create secret generic ${secret.name}`;
    throw new CertificateError('MISSING', `Secret ${nameOf(deps)} is not there: ${cure}`);
  }
  // After a person has emptied the Secret the certificates in use go on.
  const isEmpty = Object.keys(dataOf(object)).length === 0;
  const found = isEmpty && last !== undefined ? last : readOwn(object, deps);
  const ownMs = clock.nowMs();
  // What has ended or is not valid yet by one clock alone says that this clock is wrong. Without the server's time the one
  // who made a certificate of the future is believed.
  const serverMs = kube.serverMs?.();
  const nowMs = Math.min(ownMs, serverMs ?? ownMs);
  const latestMs = serverMs === undefined ? Number.POSITIVE_INFINITY : Math.max(ownMs, serverMs);
  noteSkew(deps, ownMs, serverMs, memory);
  const { set: present, reasons } = decideCertificates(found, wanted, nowMs, latestMs);
  if (reasons.length === 0 && found !== last) return present;
  const isOutOfTime = reasons.some((reason) => reason.endsWith(OUT_OF_TIME));
  // What this replica wrote then is in time by its clock, so this is of another one.
  const hasReplaced = Math.abs(ownMs - (memory.replacedAtMs ?? Number.NaN)) < REPLACE_AGAIN_MS;
  if (isOutOfTime && hasReplaced && isComplete(found)) return found;
  // Another replica may still use a certificate of an authority that is damaged here.
  const { set } = decideCertificates({ ...found, earlier: withAuthority(found, last) }, wanted, nowMs, latestMs);
  try {
    await kube.update(SECRETS, withSet(object, set, wanted.program));
  } catch (error) {
    if (isKubeError(error, 'CONFLICT') || isKubeError(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
  if (isOutOfTime) memory.replacedAtMs = ownMs;
  log.info('certificates written', { secret: nameOf(deps), reasons: reasons.length > 0 ? reasons : ['emptied'] });
  return set;
}

function withAuthority(
  { authority, next, earlier }: CertificateSet,
  last: CertificateSet | undefined,
): readonly string[] {
  const cert = last?.authority?.cert;
  const isKnown = cert === undefined || [authority?.cert, next?.cert, ...earlier].includes(cert);
  return isKnown ? earlier : [cert, ...earlier];
}

function readOwn(object: KubeObject, { wanted, secret }: CertificateKeeperDeps): CertificateSet {
  const data = dataOf(object);
  if (Object.keys(data).length > 0 && object.metadata.annotations?.[PROGRAM_ANNOTATION] !== wanted.program) {
    const text = `Secret ${secret.namespace}/${secret.name} has data that ${wanted.program} did not write, and is left alone`;
    const cure = `name another one by --tls-secret, or delete it and apply the manifests again; certificates of your own are files: --tls-secret='' and --tls-cert-file`;
    throw new CertificateError('FOREIGN', `${text}: ${cure}`);
  }
  return readCertificateSet(data);
}

function withSet(object: KubeObject, set: CertificateSet, program: string): KubeObject {
  const { metadata } = object;
  const annotations = { ...metadata.annotations, [PROGRAM_ANNOTATION]: program };
  return { ...object, metadata: { ...metadata, annotations }, data: renderCertificateSet(set) };
}

function dataOf({ data }: KubeObject): Readonly<Record<string, unknown>> {
  return recordOf(data);
}

function nameOf({ secret }: CertificateKeeperDeps): string {
  return `${secret.namespace}/${secret.name}`;
}
