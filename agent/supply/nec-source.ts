import { annotationsOf } from '../../crd/node-eni-config.ts';
import { readNodeSettings } from '../../crd/node-eni-config-annotations.ts';
import { nodeUsageOf } from '../../crd/node-usage.ts';
import { type ReadNodeEniConfig, readNodeEniConfig } from '../../crd/read-node-eni-config.ts';
import { FreshStore } from '../../kube/fresh-store.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import { type Informer, openInformer } from '../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { LastReports } from '../../kube/reporter.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import { ConfigError, type Fault } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Supply } from '../journal/supply.ts';
import { isSupplyDamaged, notReadyReasonOf, observedNecOf, withAgentFields } from './observed-nec.ts';
import type { AgentSpec, ObservedNec, ReadinessSpec } from './publication.ts';
import { supplyOfConfig } from './supply-of-config.ts';
import { afterInvalid, type InForce, type SupplyEvent, type SupplySource } from './supply-source.ts';

/** Options of following the node's NodeENIConfig. */
type NecSourceOptions = InForce & {
  readonly background: Background;
  readonly client: KubeClient;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** Reports whether a Pod has an address: a limit set by annotation must not be below what is in use. */
  readonly isInUse: (ip: string) => boolean;
  /** Called once for each new set of faults in what people wrote, and once when there are none any more. */
  readonly onFaults?: (kind: 'annotation' | 'object', faults: readonly Fault[]) => void;
  /** Called when a publication had nothing to write. */
  readonly nothingDue?: () => void;
};

/** The result of a publication. */
type PublishOutcome =
  /** There is no object, or nothing was due. */
  | 'nothing'
  /** The write made a new version: no older write can succeed any more. */
  | 'changed'
  /** The object had this content already. */
  | 'unchanged';

/**
 * The node's NodeENIConfig in the cluster: the source of supply, and the object in which the agent publishes its
 * demand.
 */
export type NecSource = SupplySource & {
  /**
   * Calls `plan` with the object as it is and writes the fields that it returns, guarded; after a conflict it calls
   * `plan` again with the newer object. One call at a time.
   * @throws KubeError; whether the write took effect is then not known.
   */
  publish(
    plan: (observed: ObservedNec) => AgentSpec | ReadinessSpec | undefined,
    signal: AbortSignal,
  ): Promise<PublishOutcome>;
  /** Returns why there is no supply; undefined when there is. */
  waitsFor(): string | undefined;
  /** Returns what ipamd reports while supply does not meet demand: `NodeENIConfig n1: SubnetExhausted: no free …`. */
  notReadyReason(): string | undefined;
  /** Number of addresses that the object says the node wants; undefined without an object, or before the first write. */
  asked(): number | undefined;
  /** When the API server last answered, monotonic milliseconds. */
  readonly lastContactMs: number;
  /** The object's uid, for events about it. */
  readonly uid: string | undefined;
};

/** Follows the NodeENIConfig named `nodeName` until `close`. Never waits for the API server. */
export function openNecSource(options: NecSourceOptions): NecSource {
  return new KubeNecSource(options);
}

class KubeNecSource implements NecSource {
  readonly #options: NecSourceOptions;
  readonly #informer: Informer<KubeObject>;
  readonly #fresh: FreshStore<KubeObject>;
  readonly #listeners = new Set<(event: SupplyEvent) => void>();
  readonly #closing = new AbortController();
  #object: KubeObject | undefined;
  #event: Extract<SupplyEvent, { kind: 'supply' }> | undefined;
  #problem: ConfigError | undefined;
  readonly #last = new LastReports();

  constructor(options: NecSourceOptions) {
    this.#options = options;
    const { background, client, clock, log, random, nodeName } = options;
    this.#informer = openInformer({
      ...{ client, clock, log, random },
      type: NODE_ENI_CONFIGS,
      query: { fieldSelector: `metadata.name=${nodeName}` },
      decode: (object) => object,
    });
    this.#fresh = new FreshStore(
      this.#informer,
      ({ metadata }) => metadata.resourceVersion,
      ({ metadata }) => metadata.generation,
    );
    this.#informer.subscribe(({ after }) => this.#onChange(after));
    background('following the NodeENIConfig', this.#informer.start(this.#closing.signal));
  }

  latest(): Supply | undefined {
    return this.#event?.supply;
  }

  problem(): ConfigError | undefined {
    return this.#problem;
  }

  get lastContactMs(): number {
    return this.#informer.lastContactMs;
  }

  get uid(): string | undefined {
    return this.#object?.metadata.uid;
  }

  waitsFor(): string | undefined {
    const { nodeName } = this.#options;
    if (this.#problem !== undefined) return `the NodeENIConfig ${nodeName} cannot be read: ${this.#problem.message}`;
    if (this.#object !== undefined) return undefined;
    if (!this.#informer.isSynced) return 'the API server did not answer yet';
    return `there is no NodeENIConfig ${nodeName} yet; tke-eni-ipamd makes it`;
  }

  notReadyReason(): string | undefined {
    const reason = this.#object === undefined ? undefined : notReadyReasonOf(this.#object);
    return reason === undefined ? undefined : `NodeENIConfig ${this.#options.nodeName}: ${reason}`;
  }

  asked(): number | undefined {
    const read = this.#object === undefined ? undefined : readNodeEniConfig(this.#object);
    return read === undefined ? undefined : observedNecOf(read.config, read.damaged).spec.desired;
  }

  subscribe(listener: (event: SupplyEvent) => void): () => void {
    this.#listeners.add(listener);
    if (this.#event !== undefined) listener(this.#event);
    if (this.#problem !== undefined) listener({ kind: 'invalid', error: this.#problem });
    return () => this.#listeners.delete(listener);
  }

  async publish(
    plan: (observed: ObservedNec) => AgentSpec | ReadinessSpec | undefined,
    signal: AbortSignal,
  ): Promise<PublishOutcome> {
    if (this.#object === undefined) return this.#publishedNothing();
    const { client, nodeName } = this.#options;
    let base: KubeObject | undefined;
    const change = (current: KubeObject): KubeObject | undefined => {
      base = undefined;
      // After a conflict it is usually newer than the known object, and the plan must be made on what the pool follows.
      if (current !== this.#object) this.#acceptAnswer(current);
      const read = readNodeEniConfig(current);
      const spec = read === undefined ? undefined : plan(this.#observedOf(read));
      if (spec === undefined) return undefined;
      base = current;
      // Only the agent's own fields differ; `apiVersion`, `kind` and `metadata` are those of `current`.
      return withAgentFields(current, spec) as KubeObject;
    };
    const written = await updateGuarded(client, NODE_ENI_CONFIGS, { name: nodeName }, change, {
      current: this.#object,
      signal,
    });
    if (written === undefined) this.#clear();
    if (written === undefined || base === undefined) return this.#publishedNothing();
    const isChanged = written.metadata.resourceVersion !== base.metadata.resourceVersion;
    this.#acceptAnswer(written);
    return isChanged ? 'changed' : 'unchanged';
  }

  #publishedNothing(): PublishOutcome {
    this.#options.nothingDue?.();
    return 'nothing';
  }

  close(): void {
    this.#closing.abort('closed');
    this.#listeners.clear();
  }

  #onChange(after: KubeObject | undefined): void {
    // An own write is newer.
    if (this.#fresh.isBehind(this.#options.nodeName)) return;
    if (after === undefined) this.#clear();
    else this.#accept(after);
  }

  /**
   * Clears the object, which was deleted or not created yet. The supply in force stays: Pods are running, and a new
   * object will describe the node again.
   */
  #clear(): void {
    if (this.#object === undefined) return;
    this.#object = undefined;
    this.#options.log.warn(`NodeENIConfig was deleted, ${afterInvalid(this.#options)}`, {
      name: this.#options.nodeName,
    });
  }

  /** Accepts the answer to a read or a write, unless the watch has brought it, or a newer object, meanwhile. */
  #acceptAnswer(object: KubeObject): void {
    const { nodeName } = this.#options;
    this.#fresh.note(nodeName, object);
    if (this.#fresh.get(nodeName) === object) this.#accept(object);
  }

  #accept(object: KubeObject): void {
    this.#object = object;
    const read = readNodeEniConfig(object);
    if (read === undefined || isSupplyDamaged(read.damaged)) {
      this.#report(read?.faults ?? []);
      return;
    }
    this.#reportFaults('object', read.faults);
    this.#problem = undefined;
    const event = this.#eventOf(read);
    this.#event = event;
    this.#notify(event);
  }

  #eventOf({ config, damaged }: ReadNodeEniConfig): Extract<SupplyEvent, { kind: 'supply' }> {
    const { settings, faults } = this.#settingsOf(config);
    this.#reportFaults('annotation', faults);
    const supply = supplyOfConfig(config, settings);
    const observed = observedNecOf(config, damaged, settings);
    if (!damaged.has('loadBalancers') && !damaged.has('loadBalancers.registeredIPs'))
      return { kind: 'supply', supply, observed };
    // What cannot be read may name more addresses than before, and none less: both count.
    const registeredIps = [...new Set([...(this.latest()?.registeredIps ?? []), ...(supply.registeredIps ?? [])])];
    return { kind: 'supply', supply: { ...supply, registeredIps }, observed };
  }

  #observedOf({ config, damaged }: ReadNodeEniConfig): ObservedNec {
    return observedNecOf(config, damaged, this.#settingsOf(config).settings);
  }

  #settingsOf({ object, status }: ReadNodeEniConfig['config']): ReturnType<typeof readNodeSettings> {
    return readNodeSettings(annotationsOf(object), nodeUsageOf(status, this.#options.isInUse));
  }

  #report(faults: readonly Fault[]): void {
    const { nodeName, log } = this.#options;
    const error = new ConfigError(`NodeENIConfig ${nodeName}`, faults);
    if (this.#problem?.message === error.message) return;
    this.#problem = error;
    log.error(`NodeENIConfig cannot be read, ${afterInvalid(this.#options)}`, { error });
    this.#reportFaults('object', faults);
    this.#notify({ kind: 'invalid', error });
  }

  /** Reports each set of faults once, however often the object changes otherwise. */
  #reportFaults(kind: 'annotation' | 'object', faults: readonly Fault[]): void {
    if (this.#last.note(kind, faults, ({ path, got }) => `${path} ${got}`) === undefined) return;
    this.#options.onFaults?.(kind, faults);
    if (faults.length > 0) this.#options.log.warn('NodeENIConfig has fields that are not taken', { kind, faults });
  }

  #notify(event: SupplyEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}
