import type { Certificate } from '../../cloud/certificates.ts';
import type { CallContext } from '../../cloud/cloud.ts';
import { CloudError, isCloudError } from '../../cloud/cloud-error.ts';
import { CLUSTER_TAG, NAMESPACE_TAG, OWNER_TAG } from '../../crd/cloud-tags.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';
import { describeValue } from '../../runtime/decode.ts';
import { KeyedMutex } from '../../runtime/keyed-mutex.ts';
import { type Notice, remark } from '../balancers/notice.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { OwnCertificate } from './own-certificate.ts';
import { certificateOwnerOf, hashOf } from './owned-certificate.ts';

/** What the keeper and the sweep of certificates work with. */
export type CertificateDeps = Pick<ControllerDeps, 'clock' | 'log' | 'metrics'> & {
  readonly cloud: Pick<ControllerDeps['cloud'], 'certificates'>;
  readonly config: Pick<ControllerDeps['config'], 'clusterId' | 'cloudTimeoutMs'>;
};

/** The certificates of a unit that the cloud has now. */
type EnsuredCertificates = {
  /** Ids by hash; one that the cloud refuses, or does not answer about, is absent. */
  readonly ids: ReadonlyMap<string, string>;
  /** What is wrong with those that are absent. */
  readonly notices: readonly Notice[];
  /** The same by hash. */
  readonly noticeOf: ReadonlyMap<string, Notice>;
  /** Those of the ids that are named which may not be. */
  readonly refused: ReadonlySet<string>;
  /** When to try again what is absent. */
  readonly afterMs?: number;
};

/** What could not be done, and when it is tried again. `isRefused`: the same request is refused again until a person changes something. */
type Failure = { readonly untilMs: number; readonly text: string; readonly isRefused: boolean };

/** What else is known of the certificates of a unit. */
type EnsureOptions = {
  readonly namespaceOf?: (hash: string) => string;
  readonly named?: readonly (readonly string[])[];
};

/** Whether a certificate that is named was uploaded of a Secret; asked again after `untilMs`; monotonic milliseconds. */
type NamedAnswer = { readonly isOfSecret: boolean; readonly untilMs: number };

/** After a refusal, and after a call that hung. */
const REFUSED_MS = 60_000;
const RETRY_MS = 20_000;
/** Lock of the first list; a hash or an id is no such text. */
const ALL = 'all';
/** All questions about what is named, after those of a pass took all its time. */
const NAMED = 'named';
const NONE: EnsuredCertificates = { ids: new Map(), notices: [], noticeOf: new Map(), refused: new Set() };
/** Most uploads of one namespace within an hour: a tenant that renews all the time fills the account no further. */
const MAX_UPLOADS = 100;
const HOUR_MS = 3_600_000;
/** The tags of a certificate that a unit names are read again after so long. */
const NAMED_MS = 600_000;
/** Most ids of one Ingress that are asked about in one pass. */
const MAX_ASKED = 10;
/** Targets come after the questions of a pass: they wait for so long at most. */
const ASK_MS = 10_000;
/** One question may take so long: an id that the cloud does not answer about leaves time for others. */
const QUESTION_MS = 4_000;
/** Shorter than what failed is left alone for: then other ids are asked about. */
const PAUSE_MS = 15_000;
/** Ids that were not asked about are asked about in the next pass. */
const MORE_MS = 5_000;
/** Most answers about ids that are kept, the latest. */
const MAX_ANSWERS = 10_000;

/**
 * Keeps the certificates of Secrets in the cloud: one for each chain, whoever uses it. The tag of the owner has the cluster and
 * the hash of the chain, so a certificate is found again by every process.
 */
export class CertificateUploads {
  readonly #deps: CertificateDeps;
  /** By hash: an upload and a deletion of one certificate exclude each other. */
  readonly #locks = new KeyedMutex();
  /** By unit: what it uses by its last plan; expiry by hash, milliseconds since the epoch. */
  readonly #uses = new Map<string, ReadonlyMap<string, number>>();
  /** By hash, or ALL. */
  readonly #failures = new Map<string, Failure>();
  /** By hash; undefined until they are listed. */
  #ids: Map<string, string> | undefined;
  /** All certificates of this cluster, also those that no unit uses. */
  #own = new Set<string>();
  /** By namespace: the hashes that it uploaded within the last hour, or may have, and when; monotonic milliseconds. */
  readonly #uploadsMs = new Map<string, Map<string, number>>();
  #uploads = 0;
  /** By id that a unit names itself, the latest answer last. */
  readonly #named = new Map<string, NamedAnswer>();

  constructor(deps: CertificateDeps) {
    this.#deps = deps;
    deps.metrics.sources.expiriesMs = () => this.#expiriesMs();
  }

  /**
   * Brings the certificates of a unit (an Ingress, or a group of them) into the cloud, and notes that it uses them, and no
   * others. Idempotent; an upload without an answer is looked for by its tag. What fails is a notice, so that all else of the
   * unit is done.
   * @param namespaceOf by hash; absent: that is not counted
   * @param named ids of certificates that the Ingresses of the unit name themselves, a list for each Ingress
   * @throws the reason of the signal
   */
  async ensure(
    unit: string,
    uploads: ReadonlyMap<string, OwnCertificate>,
    context: CallContext,
    { namespaceOf = () => '', named = [] }: EnsureOptions = {},
  ): Promise<EnsuredCertificates> {
    if (uploads.size === 0) this.forget(unit);
    if (uploads.size + named.flat().length === 0) return NONE;
    if (uploads.size > 0)
      this.#uses.set(unit, new Map([...uploads].map(([hash, { expiresAtMs }]) => [hash, expiresAtMs])));
    // Targets wait for the pass, so one call that hangs takes no longer than all questions may.
    const brief = { ...context, timeoutMs: Math.min(context.timeoutMs ?? ASK_MS, ASK_MS) };
    const failed = uploads.size === 0 ? undefined : await this.#locks.run(ALL, () => this.#listOnce(brief));
    const { refused, doubtUntilMs } = await this.#refuse(named, context);
    const ids = new Map<string, string>();
    const failures = new Map<OwnCertificate, Failure>();
    const endMs = this.#deps.clock.monotonicMs() + ASK_MS;
    let late = failed;
    for (const [hash, upload] of uploads) {
      const known = this.#ids?.get(hash) ?? late;
      const ensured = known ?? (await this.#locks.run(hash, () => this.#ensureOne(upload, namespaceOf(hash), brief)));
      if (typeof ensured === 'string') ids.set(hash, ensured);
      else failures.set(upload, ensured);
      // Without an answer for so long the others are not asked about in this pass.
      const isLate = this.#deps.clock.monotonicMs() >= endMs;
      if (typeof ensured !== 'string' && !ensured.isRefused && isLate) late ??= ensured;
    }
    const untilMs = Math.min(doubtUntilMs, ...[...failures.values()].map((failure) => failure.untilMs));
    if (untilMs === Number.POSITIVE_INFINITY) return { ...NONE, ids, refused };
    const afterMs = Math.max(1, untilMs - this.#deps.clock.monotonicMs());
    const noticeOf = new Map([...failures].map(([upload, failure]) => [upload.hash, describe(upload, failure)]));
    return { ids, notices: [...noticeOf.values()], noticeOf, refused, afterMs };
  }

  /** Notes that a unit uses no certificate any more. Idempotent. */
  forget(unit: string): void {
    this.#uses.delete(unit);
  }

  /** Takes over what the cloud has: all certificates of this cluster, in any order. Of one chain the oldest counts. */
  learn(certificates: readonly Certificate[]): void {
    const oldest = certificates.toSorted((a, b) => a.createdAtMs - b.createdAtMs || compareTexts(a.certId, b.certId));
    this.#ids = new Map();
    this.#own = new Set();
    for (const one of oldest) {
      const hash = hashOf(this.#deps.config.clusterId, one);
      if (hash !== undefined) this.#own.add(one.certId);
      if (hash !== undefined && !this.#ids.has(hash)) this.#ids.set(hash, one.certId);
    }
  }

  /** Returns how many were uploaded since it was asked last. */
  takeUploads(): number {
    const uploads = this.#uploads;
    this.#uploads = 0;
    return uploads;
  }

  /** Whether a unit uses a certificate by its last plan. A second one of the same chain is used by none. */
  isUsed(certificate: Certificate): boolean {
    const hash = hashOf(this.#deps.config.clusterId, certificate) ?? '';
    if (![...this.#uses.values()].some((hashes) => hashes.has(hash))) return false;
    const used = this.#ids?.get(hash);
    return used === undefined || used === certificate.certId;
  }

  /**
   * Deletes a certificate that nothing uses; does nothing, and returns false, when a unit uses it by now.
   * @throws CloudError of the deletion
   */
  async delete(certificate: Certificate, context: CallContext): Promise<boolean> {
    const { cloud, config } = this.#deps;
    const hash = hashOf(config.clusterId, certificate);
    if (hash === undefined) return false;
    return await this.#locks.run(hash, async () => {
      if (this.isUsed(certificate)) return false;
      // Whatever the answer is: it is looked for by its tag before it is used again.
      if (this.#ids?.get(hash) === certificate.certId) this.#ids.delete(hash);
      try {
        await cloud.certificates.delete(certificate.certId, context);
      } catch (error) {
        if (!isCloudError(error, 'gone')) throw error;
      }
      return true;
    });
  }

  /** One list at the start, in place of a question for each certificate. @returns why there is none */
  async #listOnce(context: CallContext): Promise<Failure | undefined> {
    if (this.#ids !== undefined) return undefined;
    const known = this.#failureOf(ALL);
    if (known !== undefined) return known;
    const { cloud, config } = this.#deps;
    const query = { tag: { key: CLUSTER_TAG, value: config.clusterId } };
    try {
      // What a list lacks that changed meanwhile is looked for by its tag.
      this.learn((await cloud.certificates.find(query, context)).certificates);
      return undefined;
    } catch (error) {
      return this.#fail(ALL, error, context);
    }
  }

  async #ensureOne(upload: OwnCertificate, namespace: string, context: CallContext): Promise<string | Failure> {
    const { hash } = upload;
    const known = this.#ids?.get(hash) ?? this.#failureOf(hash) ?? this.#limitOf(namespace, hash);
    if (known !== undefined) return known;
    try {
      const certId = (await this.#find(hash, context)) ?? (await this.#upload(upload, namespace, context));
      this.#ids?.set(hash, certId);
      this.#own.add(certId);
      return certId;
    } catch (error) {
      return this.#fail(hash, error, context);
    }
  }

  /** Returns why a namespace may not upload a chain now. One that it uploaded already, or may have, counts once. */
  #limitOf(namespace: string, hash: string): Failure | undefined {
    const sinceMs = this.#deps.clock.monotonicMs() - HOUR_MS;
    for (const [one, times] of this.#uploadsMs) {
      for (const [counted, ms] of times) if (ms <= sinceMs) times.delete(counted);
      if (times.size === 0) this.#uploadsMs.delete(one);
    }
    const recent = this.#uploadsMs.get(namespace);
    if (recent === undefined || recent.size < MAX_UPLOADS || recent.has(hash) || namespace === '') return undefined;
    const text = `${recent.size} certificates of the namespace were uploaded within the hour, and that is the most`;
    return { untilMs: Math.min(...recent.values()) + HOUR_MS, text, isRefused: true };
  }

  /** Counts an upload. @returns what undoes that, where it certainly has not taken place */
  #countUpload(namespace: string, hash: string): () => void {
    const times = this.#uploadsMs.get(namespace) ?? new Map<string, number>();
    const earlierMs = times.get(hash);
    times.set(hash, this.#deps.clock.monotonicMs());
    this.#uploadsMs.set(namespace, times);
    return () => {
      if (earlierMs === undefined) times.delete(hash);
      else times.set(hash, earlierMs);
    };
  }

  /**
   * Which ids may not be named: those of Secrets, and those of which that is not known. The Ingresses take turns, so that
   * what one names leaves the others their answers.
   */
  async #refuse(named: readonly (readonly string[])[], context: CallContext) {
    const { clock } = this.#deps;
    const endMs = clock.monotonicMs() + ASK_MS;
    const failure = this.#failureOf(NAMED);
    // What has no answer is asked about before what has an old one.
    const members = named.map((ids) => {
      const isKnown = (id: string): number => Number(this.#named.has(id));
      return { ids: ids.toSorted((one, other) => isKnown(one) - isKnown(other)), asked: 0, failure };
    });
    for (let at = 0; members.some(({ ids }) => at < ids.length); at++)
      for (const member of members) {
        const id = member.ids[at];
        const timeoutMs = Math.min(QUESTION_MS, endMs - clock.monotonicMs());
        const mayAsk = member.failure === undefined && member.asked < MAX_ASKED && timeoutMs > 0;
        if (id === undefined || !mayAsk || this.#isAnswered(id)) continue;
        member.asked += 1;
        member.failure = await this.#locks.run(id, () => this.#ask(id, { ...context, timeoutMs }));
        const nowMs = clock.monotonicMs();
        if (member.failure !== undefined && nowMs >= endMs)
          this.#failures.set(NAMED, { ...member.failure, untilMs: nowMs + PAUSE_MS });
      }
    const refused = new Set<string>();
    let doubtUntilMs = Number.POSITIVE_INFINITY;
    for (const { ids, failure: its } of members)
      for (const id of ids) {
        // An owner tag does not change: an answer counts until there is a later one.
        const isOfSecret = this.#own.has(id) || this.#named.get(id)?.isOfSecret;
        if (isOfSecret !== false) refused.add(id);
        if (isOfSecret === undefined)
          doubtUntilMs = Math.min(doubtUntilMs, its?.untilMs ?? clock.monotonicMs() + MORE_MS);
      }
    return { refused, doubtUntilMs };
  }

  #isAnswered(certId: string): boolean {
    return this.#own.has(certId) || (this.#named.get(certId)?.untilMs ?? 0) > this.#deps.clock.monotonicMs();
  }

  /** Asks whether a certificate was uploaded of a Secret, by its tag: of this cluster or of another one. @returns why there is no answer */
  async #ask(certId: string, context: CallContext): Promise<Failure | undefined> {
    // Another unit may have asked meanwhile.
    if (this.#isAnswered(certId)) return undefined;
    const known = this.#failureOf(certId);
    if (known !== undefined) return known;
    try {
      const { certificates } = await this.#deps.cloud.certificates.find({ search: certId }, context);
      const isOfSecret = certificates.some((one) => one.certId === certId && one.tags[OWNER_TAG] !== undefined);
      this.#answer(certId, isOfSecret, NAMED_MS);
      return undefined;
    } catch (error) {
      const failure = this.#fail(certId, error, context);
      if (!failure.isRefused) return failure;
      // A key without rights to certificates has uploaded none.
      this.#answer(certId, this.#named.get(certId)?.isOfSecret ?? false, REFUSED_MS);
      return undefined;
    }
  }

  #answer(certId: string, isOfSecret: boolean, forMs: number): void {
    this.#named.delete(certId);
    this.#named.set(certId, { isOfSecret, untilMs: this.#deps.clock.monotonicMs() + forMs });
    const [oldest] = this.#named.keys();
    if (this.#named.size > MAX_ANSWERS && oldest !== undefined) this.#named.delete(oldest);
  }

  /** Returns a failure after which it is too early to try again. */
  #failureOf(key: string): Failure | undefined {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [one, { untilMs }] of this.#failures) if (untilMs <= nowMs) this.#failures.delete(one);
    return this.#failures.get(key);
  }

  #fail(key: string, error: unknown, { signal }: CallContext): Failure {
    signal.throwIfAborted();
    if (!isCloudError(error)) throw error;
    const isHung = error.code === 'TIMEOUT';
    const isRefused = isCloudError(error, 'never', 'quota');
    const waitMs = isRefused || isHung ? REFUSED_MS : RETRY_MS;
    const untilMs = this.#deps.clock.monotonicMs() + Math.max(waitMs, error.afterMs);
    const failure = { untilMs, text: error.message, isRefused };
    this.#failures.set(key, failure);
    this.#deps.metrics.certificateOutcomes.inc({ outcome: isRefused ? 'refused' : 'failed' });
    return failure;
  }

  /** Finds the oldest one of a chain. @throws CloudError when that is not certain */
  async #find(hash: string, context: CallContext): Promise<string | undefined> {
    const { cloud, config } = this.#deps;
    const query = { tag: { key: OWNER_TAG, value: certificateOwnerOf(config.clusterId, hash) } };
    const { certificates, isConsistent } = await cloud.certificates.find(query, context);
    const [first] = certificates.toSorted((a, b) => a.createdAtMs - b.createdAtMs || compareTexts(a.certId, b.certId));
    if (first !== undefined || isConsistent) return first?.certId;
    const text = 'the certificates changed while they were listed';
    throw new CloudError({
      code: 'BAD_ANSWER',
      action: 'DescribeCertificates',
      text,
      retry: 'backoff',
      afterMs: 1_000,
    });
  }

  async #upload({ hash, chain, privateKey }: OwnCertificate, namespace: string, context: CallContext): Promise<string> {
    const { cloud, config, log, metrics } = this.#deps;
    const owner = { [CLUSTER_TAG]: config.clusterId, [OWNER_TAG]: certificateOwnerOf(config.clusterId, hash) };
    const tags = namespace === '' ? owner : { ...owner, [NAMESPACE_TAG]: namespace };
    const name = `tke-eni/${config.clusterId}/${hash.slice(0, SHOWN_DIGITS)}`;
    const uncount = this.#countUpload(namespace, hash);
    const certId = await cloud.certificates
      .upload({ name, chain, privateKey, tags }, context)
      .catch((error: unknown) => {
        // Otherwise it may have arrived.
        if (isCloudError(error) && error.retry !== 'resolve') uncount();
        throw error;
      });
    log.info('a certificate of a Secret is uploaded', { certId, hash });
    this.#uploads += 1;
    metrics.certificateOutcomes.inc({ outcome: 'uploaded' });
    return certId;
  }

  #expiriesMs(): readonly number[] {
    return [...this.#uses.values()].flatMap((hashes) => [...hashes.values()]);
  }
}

const SHOWN_DIGITS = 16;

function describe({ name, expiresAt }: OwnCertificate, { text, isRefused }: Failure): Notice {
  const what = `the certificate of ${describeValue(name)} until ${expiresAt}`;
  const end = `${text}; what its hosts have stays as it is, and it is tried again`;
  return isRefused
    ? remark('CertificateRefused', `the cloud does not take ${what}: ${end}`)
    : remark('SyncLoadBalancerFailed', `it is not known whether the account has ${what}: ${end}`);
}
