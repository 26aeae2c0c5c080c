import { type ReconcileResult, runController } from '../../kube/controller.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError, KubeError } from '../../kube/kube-error.ts';
import { SECRETS } from '../../kube/resource-types.ts';
import { TokenBucket } from '../../kube/token-bucket.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import { recordOf } from '../../runtime/json.ts';
import { countsOf } from '../../runtime/metrics/metric-table.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { parseSecret, type SecretFacts } from './plan-certificates.ts';

type ReaderDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'log' | 'random'> & {
  readonly metrics: { readonly sources: Pick<ControllerDeps['metrics']['sources'], 'secrets'> };
};

/** An Ingress, as far as its Secrets are concerned. */
type SecretUser = {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  /** Of its metadata: another one means another spec. */
  readonly generation: number;
};

/** What is kept of an Ingress: its Secrets, `namespace/name` each. */
type Use = { readonly generation: number; readonly secrets: ReadonlySet<string> };

/** What is kept of a Secret. */
type KeptSecret = {
  readonly namespace: string;
  readonly name: string;
  readonly users: Set<string>;
  facts: SecretFacts;
  /** Whether the API server was asked for it. */
  isAsked: boolean;
  /** How many times in a row there was nothing to read. */
  absences: number;
};

/** A Secret is read again after so long. */
const PERIOD_MS = 60_000;
/** One that is missing, or may not be read, is asked for again after so long; mostly it comes soon, or never. */
const ABSENT: BackoffSettings = { firstMs: 30_000, maxMs: 600_000, factor: 2, jitter: 0.3 };
/** Secrets that are read again, a second: a quarter of the default of --kube-api-qps. Namespaces take turns. */
const AGAIN_PER_SECOND = 5;
/** Half of them at most for one namespace. */
const WORKERS = 16;
const BACKOFF: BackoffSettings = { firstMs: 1_000, maxMs: 60_000, factor: 2, jitter: 0.3 };
/** What certificates are made of; nothing else of a Secret is kept. */
const KEYS = ['tls.crt', 'tls.key', 'qcloud_cert_id', 'qcloud_ca_cert_id'] as const;
/** Most characters of a value that are kept, in base64; a certificate that may be uploaded has fewer. */
const MAX_CHARS = 100_000;
/** Most characters of all Secrets. What is more is `unkept`, but for namespaces that have less than an equal share of it. */
const MAX_CHARS_OF_ALL = 64 * 1024 * 1024;
const UNKNOWN: SecretFacts = { kind: 'unknown' };

/**
 * Reads the Secrets that Ingresses name, each by `get`, so that a Role with their names is enough. What is known is
 * answered from memory. A Secret is read when it is named first, when the spec of an Ingress that names it changes, and
 * each minute; what is not there more and more rarely. While the API server does not answer, what was known stays.
 *
 * Namespaces take turns, and each has its share of the budget: one that names thousands of Secrets delays its own.
 */
export class SecretReader {
  readonly #deps: ReaderDeps;
  readonly #onChange: (ingress: string) => void;
  readonly #queue: WorkQueue;
  readonly #pace: TokenBucket;
  readonly #secrets = new Map<string, KeptSecret>();
  readonly #uses = new Map<string, Use>();
  /** By namespace: characters that are kept. */
  readonly #charsOf = new Map<string, number>();
  #chars = 0;

  /** @param onChange called with `namespace/name` of each Ingress of which a Secret has changed */
  constructor(deps: ReaderDeps, onChange: (ingress: string) => void) {
    this.#deps = deps;
    this.#onChange = onChange;
    this.#queue = new WorkQueue({ clock: deps.clock, random: deps.random, backoff: BACKOFF });
    this.#pace = new TokenBucket(deps.clock, AGAIN_PER_SECOND, 1);
    deps.metrics.sources.secrets = () => countsOf([...this.#secrets.values()].map(({ facts }) => facts.kind));
  }

  /**
   * Returns what is known of the Secrets of an Ingress, by name; they are followed from now on. Those that it named before,
   * and does not any more, are forgotten.
   */
  secretsOf({ key, namespace, generation }: SecretUser, names: readonly string[]): (name: string) => SecretFacts {
    const before = this.#uses.get(key);
    const secrets = new Set<string>();
    for (const name of names) {
      if (name === '') continue;
      const secret = `${namespace}/${name}`;
      secrets.add(secret);
      const known = this.#secrets.get(secret);
      known?.users.add(key);
      if (known === undefined)
        this.#secrets.set(secret, {
          ...{ namespace, name, users: new Set([key]), facts: UNKNOWN },
          ...{ isAsked: false, absences: 0 },
        });
      if (known !== undefined && before?.generation === generation) continue;
      // It is read without waiting for the pace, and soon again if it is not there yet.
      if (known !== undefined) Object.assign(known, { isAsked: false, absences: 0 });
      this.#queue.addFirst(secret);
    }
    for (const secret of before?.secrets ?? []) if (!secrets.has(secret)) this.#leave(secret, key);
    if (secrets.size === 0) this.#uses.delete(key);
    else this.#uses.set(key, { generation, secrets });
    return (name) => this.#secrets.get(`${namespace}/${name}`)?.facts ?? UNKNOWN;
  }

  /** Reports whether a Secret waits to be read: its namespace names many. */
  isInLine(namespace: string, name: string): boolean {
    return this.#secrets.get(`${namespace}/${name}`)?.isAsked === false;
  }

  /** Forgets an Ingress, and the Secrets that no other one names. Idempotent. */
  forget(ingress: string): void {
    for (const secret of this.#uses.get(ingress)?.secrets ?? []) this.#leave(secret, ingress);
    this.#uses.delete(ingress);
  }

  /** Reads until aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const reconcile = (key: string, ended: AbortSignal): Promise<ReconcileResult> => this.#read(key, ended);
    const name = 'secrets-of-ingresses';
    await runController({ name, queue: this.#queue, workers: WORKERS, reconcile, clock, log }, signal);
    this.#queue.close();
  }

  async #read(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const secret = this.#secrets.get(key);
    if (secret === undefined) return { kind: 'done' };
    if (secret.isAsked) await this.#pace.take(signal, secret.namespace);
    secret.isAsked = true;
    const facts = await this.#get(secret, signal);
    // It may have been forgotten meanwhile.
    if (this.#secrets.get(key) === secret) this.#keep(key, secret, facts);
    secret.absences = facts.kind === 'found' ? 0 : secret.absences + 1;
    const { random } = this.#deps;
    const afterMs =
      secret.absences > 0 ? backoffMs(ABSENT, secret.absences, random()) : PERIOD_MS * (0.75 + random() / 2);
    return { kind: 'again', afterMs };
  }

  /** @throws KubeError when the API server does not say what there is */
  async #get({ namespace, name }: KeptSecret, signal: AbortSignal): Promise<SecretFacts> {
    try {
      const object = await this.#deps.kube.get(SECRETS, { namespace, name }, signal);
      return object === undefined ? { kind: 'missing' } : factsOf(object);
    } catch (error) {
      if (isKubeError(error, 'FORBIDDEN')) return { kind: 'forbidden' };
      if (isKubeError(error, 'NOT_FOUND')) return { kind: 'missing' };
      // The cause of this one can show a part of the answer.
      if (isKubeError(error, 'BAD_ANSWER'))
        throw new KubeError({ code: error.code, request: error.request, text: error.text });
      throw error;
    }
  }

  #keep(key: string, secret: KeptSecret, facts: SecretFacts): void {
    const isKept = this.#isWithinBudget(secret, charsOf(facts) - charsOf(secret.facts));
    const kept: SecretFacts = isKept ? facts : { kind: 'unkept' };
    if (areEqual(secret.facts, kept)) return;
    if (!isKept)
      this.#deps.log.warn('the Secrets of Ingresses are too large to be kept; one is not read', { secret: key });
    if (kept.kind === 'found') parseSecret(kept);
    this.#count(secret, charsOf(kept) - charsOf(secret.facts));
    secret.facts = kept;
    for (const ingress of secret.users) this.#onChange(ingress);
  }

  /** Whether all Secrets are within the budget, or those of this namespace take no more than an equal share. */
  #isWithinBudget({ namespace }: KeptSecret, more: number): boolean {
    const its = this.#charsOf.get(namespace) ?? 0;
    const namespaces = this.#charsOf.size + (this.#charsOf.has(namespace) ? 0 : 1);
    return this.#chars + more <= MAX_CHARS_OF_ALL || its + more <= MAX_CHARS_OF_ALL / namespaces;
  }

  #count({ namespace }: KeptSecret, more: number): void {
    this.#chars += more;
    const its = (this.#charsOf.get(namespace) ?? 0) + more;
    if (its > 0) this.#charsOf.set(namespace, its);
    else this.#charsOf.delete(namespace);
  }

  #leave(key: string, ingress: string): void {
    const secret = this.#secrets.get(key);
    if (secret?.users.delete(ingress) !== true || secret.users.size > 0) return;
    this.#count(secret, -charsOf(secret.facts));
    this.#secrets.delete(key);
  }
}

function factsOf(object: KubeObject): SecretFacts {
  const { type } = object;
  const all = recordOf(object['data']);
  const data = KEYS.flatMap((key) => {
    const value = all[key];
    return typeof value === 'string' ? [[key, value.slice(0, MAX_CHARS)] as const] : [];
  });
  return { kind: 'found', type: typeof type === 'string' ? type : '', data: Object.fromEntries(data) };
}

function charsOf(facts: SecretFacts): number {
  if (facts.kind !== 'found') return 0;
  return Object.values(facts.data).reduce((sum, { length }) => sum + length, 0);
}

function areEqual(a: SecretFacts, b: SecretFacts): boolean {
  if (a.kind !== 'found' || b.kind !== 'found') return a.kind === b.kind;
  return a.type === b.type && KEYS.every((key) => a.data[key] === b.data[key]);
}
