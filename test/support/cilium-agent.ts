import { type CiliumAllocation, RELEASE_STATE, readCiliumNode } from '../../crd/cilium-node.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CILIUM_NODES } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import { recordOf } from '../../runtime/json.ts';
import { silentLogger } from '../../runtime/log.ts';

/** How a stand-in of Cilium's agent runs. */
type CiliumAgentSettings = {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly random: () => number;
  readonly nodeName: string;
  /** Shortest time between two writes of the status; default 15 s. */
  readonly updateRateMs?: number;
  /** It takes an address for health checks, and waits for two addresses; default true. */
  readonly hasHealthChecks?: boolean;
  /** Labels and annotations of the Node: they replace those of the CiliumNode at each start. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Owners and addresses that were there before the start: of Pods, `router`, `health`. They are asked for again. */
  readonly endpoints?: ReadonlyMap<string, string>;
  /** How long after its start it asks for them. Marks are answered meanwhile, as if none of them were in use. */
  readonly restoreAfterMs?: number;
};

const UPDATE_RATE_MS = 15_000;
const POOL_LOOK_MS = 5_000;
const START_TRIES = 10;
const START_RETRY_MS = 500;

/**
 * A stand-in of Cilium's agent in IPAM mode `crd`: allocates from `spec.ipam.pool` at random, writes its whole copy of the
 * status at most every 15 s, and answers marks by what it has allocated. One object is one life: what it knows ends with
 * its signal, and `endpoints` of the next one are the Pods that lived on.
 * @see Cilium v1.18 pkg/ipam/crd.go
 */
export class CiliumAgent {
  readonly #settings: CiliumAgentSettings;
  readonly #change: ChangeSignal;
  /** What it believes of the object: as it was read, with its own answers. */
  #own: KubeObject | undefined;
  /** It has an allocator: marks are answered. */
  #isAllocating = false;
  #isTriggered = false;
  readonly #allocated = new Map<string, CiliumAllocation & { readonly owner: string }>();
  /** Owners whose address could not be had again, and why. */
  readonly lost = new Map<string, string>();
  /** Writes of the status that met a conflict. */
  conflicts = 0;

  constructor(settings: CiliumAgentSettings) {
    this.#settings = settings;
    this.#change = new ChangeSignal(settings.clock);
  }

  /**
   * Starts, and runs until aborted. Resolves when endpoints are restored; waits as long as the pool has too few addresses.
   * @throws Error when the object can be neither made nor updated; rejects with the signal's reason
   */
  async start(signal: AbortSignal): Promise<void> {
    const { clock, kube, nodeName, random, endpoints = new Map(), restoreAfterMs = 0 } = this.#settings;
    await this.#updateResource(signal);
    const informer = openInformer({
      client: kube,
      type: CILIUM_NODES,
      query: { fieldSelector: `metadata.name=${nodeName}` },
      decode: (object) => object,
      clock,
      random,
      log: silentLogger,
    });
    informer.subscribe(({ before, after }) => this.#see(before, after));
    void informer.start(signal);
    void this.#keepStatus(signal);
    await informer.synced(signal);
    while (!this.#hasEnough()) await clock.sleep(POOL_LOOK_MS, signal);
    this.#isAllocating = true;
    await clock.sleep(restoreAfterMs, signal);
    for (const [owner, ip] of endpoints) this.#restore(owner, ip);
    const own = this.#settings.hasHealthChecks === false ? ['router'] : ['router', 'health'];
    const taken = new Set(this.dump().values());
    for (const owner of own) if (!taken.has(owner)) this.allocate(owner);
    this.#trigger();
  }

  /** Gives an owner an address. Its own, if the pool has one for it: also when it is given already. @throws Error when there is none */
  allocate(owner: string): string {
    const { pool } = this.#ipam();
    const pinned = [...pool].find(([, entry]) => entry.owner === owner)?.[0];
    const free = [...pool].filter(
      ([ip, entry]) => !this.#allocated.has(ip) && !this.#isInHandshake(ip) && entry.owner === undefined,
    );
    const ip = pinned ?? free[Math.floor(this.#settings.random() * free.length)]?.[0];
    if (ip === undefined) throw new Error('No more IPs available');
    this.#take(ip, owner);
    this.#trigger();
    return ip;
  }

  /** Takes an address back. @throws Error when it is not allocated */
  release(ip: string): void {
    if (!this.#allocated.delete(ip)) throw new Error(`IP ${ip} is not allocated`);
    this.#trigger();
  }

  /** Lists owners by their addresses. */
  dump(): ReadonlyMap<string, string> {
    return new Map([...this.#allocated].map(([ip, { owner }]) => [ip, owner]));
  }

  #restore(owner: string, ip: string): void {
    if (this.#allocated.has(ip)) this.lost.set(owner, 'IP already in use');
    else if (this.#isInHandshake(ip)) this.lost.set(owner, 'IP not available, marked or ready for release');
    else if (!this.#ipam().pool.has(ip)) this.lost.set(owner, `IP ${ip} is not available`);
    else this.#take(ip, owner);
  }

  #take(ip: string, owner: string): void {
    this.#allocated.set(ip, { ...this.#ipam().pool.get(ip), owner });
  }

  #ipam() {
    if (this.#own === undefined) throw new Error('CiliumNode for own node is not available');
    return readCiliumNode(this.#own).ipam;
  }

  #isInHandshake(ip: string): boolean {
    const state = this.#ipam().releases.get(ip);
    return state !== undefined && state !== RELEASE_STATE.refused;
  }

  #hasEnough(): boolean {
    if (this.#own === undefined) return false;
    const { pool, minAllocate, preAllocate } = this.#ipam();
    const least = this.#settings.hasHealthChecks === false ? 1 : 2;
    return pool.size >= (minAllocate || preAllocate || least);
  }

  /** Creates the object, or replaces its labels and annotations. */
  async #updateResource(signal: AbortSignal): Promise<void> {
    const { kube, nodeName: name, clock, labels = {}, annotations = {} } = this.#settings;
    for (let attempt = 1; ; attempt++) {
      try {
        const now = await kube.get(CILIUM_NODES, { name }, signal);
        const metadata = { ...now?.metadata, name, labels, annotations };
        if (now !== undefined) await kube.update(CILIUM_NODES, { ...now, metadata }, signal);
        else await kube.create(CILIUM_NODES, { apiVersion: 'cilium.io/v2', kind: 'CiliumNode', metadata }, signal);
        return;
      } catch (error) {
        if (signal.aborted || !isKubeError(error)) throw error;
        if (attempt >= START_TRIES) {
          throw new Error('Could not create or update CiliumNode resource, despite 10 retries', { cause: error });
        }
      }
      await clock.sleep(START_RETRY_MS, signal);
    }
  }

  /** Takes an event of the watch in. One that changes metadata alone replaces the copy, and no mark is looked at. */
  #see(before: KubeObject | undefined, after: KubeObject | undefined): void {
    this.#own = after;
    if (after === undefined || (before !== undefined && contentOf(before) === contentOf(after))) return;
    const { pool, releases } = this.#ipam();
    if (recordOf(recordOf(after['spec'])['ipam'])['pool'] === undefined) return;
    const answers = new Map<string, string | undefined>();
    for (const [ip, state] of releases) {
      if (state === RELEASE_STATE.released && !pool.has(ip)) answers.set(ip, undefined);
      if (state !== RELEASE_STATE.marked) continue;
      if (!pool.has(ip)) answers.set(ip, RELEASE_STATE.refused);
      else if (this.#isAllocating) {
        answers.set(ip, this.#allocated.has(ip) ? RELEASE_STATE.refused : RELEASE_STATE.ready);
      }
    }
    if (answers.size === 0) return;
    this.#own = withIpamStatus(after, { 'release-ips': changed(after, answers) });
    this.#trigger();
  }

  #trigger(): void {
    this.#isTriggered = true;
    this.#change.notify();
  }

  async #keepStatus(signal: AbortSignal): Promise<void> {
    const { clock, updateRateMs = UPDATE_RATE_MS } = this.#settings;
    while (!signal.aborted) {
      // A trigger that comes while it sleeps or writes is seen at once.
      if (!this.#isTriggered) await this.#change.wait(updateRateMs, signal);
      if (!this.#isTriggered || signal.aborted) continue;
      this.#isTriggered = false;
      await this.#writeStatus(signal);
      await clock.sleep(updateRateMs, signal).catch(() => {});
    }
  }

  async #writeStatus(signal: AbortSignal): Promise<void> {
    if (this.#own === undefined) return;
    const { metadata, status } = withIpamStatus(this.#own, { used: Object.fromEntries(this.#allocated) });
    const body = [
      { op: 'replace', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
      { op: 'add', path: '/status', value: status },
    ];
    try {
      const { nodeName: name, kube } = this.#settings;
      await kube.patch(CILIUM_NODES, { name }, { kind: 'json', body, subresource: 'status' }, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (isKubeError(error, 'CONFLICT')) this.conflicts++;
      else if (!isKubeError(error)) throw error;
      this.#isTriggered = true;
    }
  }
}

/** Returns what decides whether an event is looked at. @see Cilium CiliumNode.DeepEqual */
function contentOf({ spec, status }: KubeObject): string {
  return JSON.stringify([spec, status]);
}

function withIpamStatus(object: KubeObject, change: Readonly<Record<string, unknown>>) {
  const status = recordOf(object['status']);
  return { ...object, status: { ...status, ipam: { ...recordOf(status['ipam']), ...change } } };
}

function changed(object: KubeObject, answers: ReadonlyMap<string, string | undefined>) {
  const entries = Object.entries(recordOf(recordOf(recordOf(object['status'])['ipam'])['release-ips']));
  return Object.fromEntries(
    entries.flatMap(([ip, state]) => {
      const answer = answers.has(ip) ? answers.get(ip) : state;
      return answer === undefined ? [] : [[ip, answer]];
    }),
  );
}
