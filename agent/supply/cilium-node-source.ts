import { type CiliumNodeIpam, readCiliumNode } from '../../crd/cilium-node.ts';
import { readNodeEniConfig } from '../../crd/read-node-eni-config.ts';
import { FreshStore } from '../../kube/fresh-store.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { LastReports } from '../../kube/reporter.ts';
import { CILIUM_NODES, NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import type { Background } from '../../runtime/background.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ConfigError, Fault } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { ON_LINK_ENI_ID, type Supply, type SupplyEni } from '../journal/supply.ts';
import { ciliumSupplyOf } from './cilium-supply.ts';
import { isSupplyDamaged } from './observed-nec.ts';
import { supplyOfConfig } from './supply-of-config.ts';
import { afterInvalid, type InForce, type SupplyEvent, type SupplySource } from './supply-source.ts';

/** Options of following the node's CiliumNode. */
type CiliumNodeSourceOptions = InForce & {
  readonly background: Background;
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** Owners that each get an address of the pool, before any Pod: `router`, `health`. */
  readonly reservedOwners: readonly string[];
  /** Reports whether no Pod has the address and it does not cool. */
  readonly isFree: (ip: string) => boolean;
  /** Called once for each new set of faults, and once when there are none any more. */
  readonly onFaults: (faults: readonly Fault[]) => void;
};

/** The CiliumNode that the supply was last made of. */
type ObservedCiliumNode = {
  readonly object: KubeObject;
  readonly ipam: CiliumNodeIpam;
  /** Addresses of the pool that no Pod can have. */
  readonly refused: ReadonlySet<string>;
};

/** The node's CiliumNode in the cluster, whose pool is the supply. */
export type CiliumNodeSource = SupplySource & {
  /** Undefined while there is no object, or none was accepted yet. */
  observed(): ObservedCiliumNode | undefined;
  /** Takes over the object as a write returned it, before the watch shows it. */
  accept(object: KubeObject): void;
  /** Notified when `observed` changed. */
  readonly changed: ChangeSignal;
  /** Returns why there is no supply; undefined when there is. */
  waitsFor(): string | undefined;
  /** Returns what of the pool is not served; undefined when all of it is. */
  notReadyReason(): string | undefined;
  /** When the API server last answered, monotonic milliseconds. */
  readonly lastContactMs: number;
  /** The object's uid, for events about it. */
  readonly uid: string | undefined;
};

/** Interval of the line that says what the agent waits for. As Cilium's. */
const WAIT_LOG_MS = 5_000;
/** How old the known ENIs may be, milliseconds. */
const ENIS_MAX_AGE_MS = 30_000;
/** How old they may be while the pool names one that is not known, milliseconds. */
const UNKNOWN_ENI_AGE_MS = 3_000;
const RETRY_BACKOFF: BackoffSettings = { firstMs: 1_000, maxMs: 10_000, factor: 2, jitter: 0.5 };
const SHOWN_FAULTS = 3;

/** Follows the CiliumNode named `nodeName` until `close`. Never waits for the API server. */
export function openCiliumNodeSource(options: CiliumNodeSourceOptions): CiliumNodeSource {
  return new KubeCiliumNodeSource(options);
}

class KubeCiliumNodeSource implements CiliumNodeSource {
  readonly changed: ChangeSignal;
  readonly #options: CiliumNodeSourceOptions;
  readonly #informer;
  readonly #fresh: FreshStore<KubeObject>;
  readonly #listeners = new Set<(event: SupplyEvent) => void>();
  readonly #closing = new AbortController();
  readonly #due: ChangeSignal;
  /** The newest version that is known. */
  #object: KubeObject | undefined;
  #observed: ObservedCiliumNode | undefined;
  #event: Extract<SupplyEvent, { kind: 'supply' }> | undefined;
  /** ENIs of the NodeENIConfig; undefined before it was read once. */
  #enis: readonly SupplyEni[] | undefined;
  #enisReadMs = Number.NEGATIVE_INFINITY;
  #faults: readonly Fault[] = [];
  readonly #last = new LastReports();
  #isFirstChange = true;
  #isDue = false;

  constructor(options: CiliumNodeSourceOptions) {
    this.#options = options;
    const { background, client, clock, log, random, nodeName } = options;
    this.changed = new ChangeSignal(clock);
    this.#due = new ChangeSignal(clock);
    this.#informer = openInformer<KubeObject>({
      ...{ client, clock, log, random },
      type: CILIUM_NODES,
      query: { fieldSelector: `metadata.name=${nodeName}` },
      decode: (object) => object,
    });
    this.#fresh = new FreshStore(
      this.#informer,
      ({ metadata }) => metadata.resourceVersion,
      ({ metadata }) => metadata.generation,
    );
    this.#informer.subscribe(({ after }) => this.#onChange(after));
    background('following the CiliumNode', this.#informer.start(this.#closing.signal));
    background('serving the CiliumNode', this.#run());
  }

  latest(): Supply | undefined {
    return this.#event?.supply;
  }

  problem(): ConfigError | undefined {
    return undefined;
  }

  observed(): ObservedCiliumNode | undefined {
    return this.#observed;
  }

  get lastContactMs(): number {
    return this.#informer.lastContactMs;
  }

  get uid(): string | undefined {
    return this.#object?.metadata.uid;
  }

  waitsFor(): string | undefined {
    const { inForce, nodeName } = this.#options;
    if (inForce() !== undefined) return undefined;
    return `Waiting for initial IP to become available in '${nodeName}' custom resource`;
  }

  notReadyReason(): string | undefined {
    if (this.#faults.length === 0) return undefined;
    const shown = this.#faults.slice(0, SHOWN_FAULTS).map(({ path, expected }) => `${path}: expected ${expected}`);
    const more = this.#faults.length > SHOWN_FAULTS ? [`and ${this.#faults.length - SHOWN_FAULTS} more`] : [];
    return `CiliumNode ${this.#options.nodeName}: ${[...shown, ...more].join('; ')}`;
  }

  subscribe(listener: (event: SupplyEvent) => void): () => void {
    this.#listeners.add(listener);
    if (this.#event !== undefined) listener(this.#event);
    return () => this.#listeners.delete(listener);
  }

  accept(object: KubeObject): void {
    const { nodeName } = this.#options;
    this.#fresh.note(nodeName, object);
    // The watch may have brought it, or a newer object, meanwhile.
    if (this.#fresh.get(nodeName) !== object) return;
    this.#object = object;
    this.#request();
  }

  close(): void {
    this.#closing.abort('closed');
    this.#listeners.clear();
  }

  #onChange(after: KubeObject | undefined): void {
    const { nodeName: name, log } = this.#options;
    // An own write is newer.
    if (this.#fresh.isBehind(name)) return;
    if (after === undefined) {
      this.#object = undefined;
      this.#observed = undefined;
      log.warn(`CiliumNode was deleted, ${afterInvalid(this.#options)}`, { name });
      this.changed.notify();
      return;
    }
    // A list may be answered from a cache: an address that was given up would seem free again.
    this.#object = this.#isFirstChange ? undefined : after;
    this.#isFirstChange = false;
    this.#request();
  }

  #request(): void {
    this.#isDue = true;
    this.#due.notify();
  }

  /** Makes each new version of the object the supply, in order, and logs what it waits for. */
  async #run(): Promise<void> {
    const { clock, log, random } = this.#options;
    const { signal } = this.#closing;
    let waitLoggedMs = Number.NEGATIVE_INFINITY;
    let failures = 0;
    while (!signal.aborted) {
      const isDue = this.#isDue || this.#areEnisOld();
      this.#isDue = false;
      try {
        if (isDue) await this.#process(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.#isDue = true;
        log.warn('the pool of the CiliumNode is not served yet, will be tried again', { error });
        failures++;
        await clock.sleep(backoffMs(RETRY_BACKOFF, failures, random()), signal).catch(() => {});
        continue;
      }
      const waitsFor = this.waitsFor();
      if (waitsFor !== undefined && this.#informer.isSynced && clock.monotonicMs() - waitLoggedMs >= WAIT_LOG_MS) {
        waitLoggedMs = clock.monotonicMs();
        log.info(waitsFor);
      }
      if (!this.#isDue) await this.#due.wait(WAIT_LOG_MS, signal);
    }
  }

  #areEnisOld(): boolean {
    return this.#hasResources() && this.#options.clock.monotonicMs() - this.#enisReadMs >= ENIS_MAX_AGE_MS;
  }

  #hasResources(): boolean {
    return [...(this.#observed?.ipam.pool.values() ?? [])].some(({ resource }) => resource !== undefined);
  }

  async #process(signal: AbortSignal): Promise<void> {
    const { client, nodeName, reservedOwners, inForce, isFree } = this.#options;
    if (this.#object === undefined) {
      const read = await client.get(CILIUM_NODES, { name: nodeName }, signal);
      if (read === undefined) return;
      this.#fresh.note(nodeName, read);
      this.#object = this.#fresh.get(nodeName);
      if (this.#object === undefined) return;
    }
    const object = this.#object;
    const { ipam, faults } = readCiliumNode(object);
    const named = [...ipam.pool.values()].flatMap(({ resource }) => resource ?? []);
    const previous = inForce();
    const enis = named.length === 0 ? [] : await this.#enisOf(named, previous, signal);
    // A newer version came while the ENIs were read.
    if (this.#object !== object) return this.#request();
    const { supply, refused } = ciliumSupplyOf({ nodeName, ipam, enis, reservedOwners, previous: inForce(), isFree });
    this.#reportFaults([
      ...faults.list,
      ...[...refused].map(([ip, got]) => ({
        path: `spec.ipam.pool.${ip}`,
        expected: 'an address that is served',
        got,
      })),
    ]);
    this.#observed = { object, ipam, refused: new Set(refused.keys()) };
    const required = Math.max(1, reservedOwners.length);
    if (inForce() !== undefined || ipam.pool.size - refused.size >= required) {
      this.#event = { kind: 'supply', supply };
      for (const listener of this.#listeners) listener(this.#event);
    }
    this.changed.notify();
  }

  /** The ENIs of the NodeENIConfig, and those of before that it does not name any more. @throws KubeError */
  async #enisOf(
    named: readonly string[],
    previous: Supply | undefined,
    signal: AbortSignal,
  ): Promise<readonly SupplyEni[]> {
    const known = new Set(this.#enis?.map(({ eniId }) => eniId));
    const ageMs = this.#options.clock.monotonicMs() - this.#enisReadMs;
    const isUnknown = named.some((id) => !known.has(id));
    if (ageMs >= (isUnknown ? UNKNOWN_ENI_AGE_MS : ENIS_MAX_AGE_MS)) {
      const { client, nodeName, clock } = this.#options;
      let object: KubeObject | undefined;
      try {
        object = await client.get(NODE_ENI_CONFIGS, { name: nodeName }, signal);
      } catch (error) {
        // A cluster without this project's definitions.
        if (!isKubeError(error, 'NOT_FOUND')) throw error;
      }
      this.#enisReadMs = clock.monotonicMs();
      this.#enis = enisOf(object) ?? this.#enis;
    }
    const now = this.#enis ?? [];
    const listed = new Set(now.map(({ eniId }) => eniId));
    const before = (previous?.enis ?? []).filter(({ eniId }) => !listed.has(eniId) && eniId !== ON_LINK_ENI_ID);
    return [...now, ...before];
  }

  #reportFaults(faults: readonly Fault[]): void {
    this.#faults = faults;
    if (this.#last.note('', faults, ({ path, got }) => `${path} ${got}`) === undefined) return;
    this.#options.onFaults(faults);
    if (faults.length > 0) this.#options.log.warn('CiliumNode has entries that are not served', { faults });
  }
}

/** The ENIs of a NodeENIConfig; undefined when they cannot be read: those of before stay. */
function enisOf(object: KubeObject | undefined): readonly SupplyEni[] | undefined {
  if (object === undefined) return [];
  const read = readNodeEniConfig(object);
  return read === undefined || isSupplyDamaged(read.damaged) ? undefined : supplyOfConfig(read.config).enis;
}
