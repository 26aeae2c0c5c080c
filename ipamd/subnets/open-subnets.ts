import type { Cloud } from '../../cloud/cloud.ts';
import type { Informer } from '../../kube/informer.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeProblem } from '../nec/node-view.ts';
import type { NodeEvents } from '../node/node-deps.ts';
import type { ConfigMapEntry } from './config-map-entry.ts';
import { decideAdoption } from './decide-adoption.ts';
import { type ChoiceFacts, type Choices, decideChoices } from './decide-choices.ts';
import { readSubnetConfig, renderConfigProblems, type SubnetConfig } from './decide-subnet-config.ts';
import { SubnetBook, type SubnetState } from './subnet-book.ts';

/** The subnets of the cluster: which there are, how full they are, and what is wrong with their configuration. */
export type Subnets = {
  /** False until the configuration and the subnets were read once: nothing can be chosen before. */
  readonly isReady: boolean;
  /** Decides in which subnets a node's new ENIs may be. */
  choicesOf(node: Pick<ChoiceFacts, 'ofConfig' | 'ofLabel' | 'zone' | 'vpcId'>): Choices;
  use(subnetId: string, count: number): void;
  block(subnetId: string): void;
  /** What is wrong with the ConfigMap: it concerns every node. */
  problems(): readonly NodeProblem[];
  /** The configuration in force, for logs and status pages. */
  config(): SubnetConfig | undefined;
  /** Calls when nodes that wait may get on: another configuration, or room where none was. */
  subscribe(listener: () => void): () => void;
  /** Follows the ConfigMap and describes the subnets until aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
};

/** Hears of subnets; how metrics come in. */
export type SubnetsObserver = {
  readonly onSubnets?: (subnets: readonly SubnetState[]) => void;
  readonly onDescribeFailed?: (error: unknown) => void;
  /** All that is wrong with the ConfigMap now; empty when nothing is. */
  readonly onConfigProblems?: (name: string, problems: readonly NodeProblem[]) => void;
};

/** What subnets work with. */
export type SubnetsDeps = {
  readonly cloud: Pick<Cloud, 'subnets'>;
  /** Of the one ConfigMap, by name. */
  readonly configMaps: Pick<Informer<ConfigMapEntry>, 'values' | 'subscribe' | 'synced'>;
  /** VPCs of the instances, for a ConfigMap that names none. */
  readonly vpcIds: () => Iterable<string>;
  /** --only-nominated-eni-subnets */
  readonly onlyNominated: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: NodeEvents;
  readonly observe: SubnetsObserver;
  /** Default: 30 s; one call a hundred subnets. */
  readonly refreshMs?: number;
};

const REFRESH_MS = 30_000;
/** After a failure, and while nothing is known. */
const RETRY_MS = 5_000;

/** Opens the subnets of the cluster. Owns nothing but while `run` goes. */
export function openSubnets(deps: SubnetsDeps): Subnets {
  return new ConfiguredSubnets(deps);
}

class ConfiguredSubnets implements Subnets {
  readonly #deps: SubnetsDeps;
  readonly #book: SubnetBook;
  readonly #onlyNominated: ReadonlySet<string>;
  readonly #listeners = new Set<() => void>();
  readonly #change: ChangeSignal;
  #isStale = true;
  #isReady = false;
  #config: SubnetConfig | undefined;
  /** In force as far as they were good; a later fault does not take them away. */
  #problems: readonly NodeProblem[] = [];
  #noted = '';

  constructor(deps: SubnetsDeps) {
    this.#deps = deps;
    this.#book = new SubnetBook(deps.cloud, deps.clock);
    this.#onlyNominated = new Set(deps.onlyNominated);
    this.#change = new ChangeSignal(deps.clock);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  choicesOf(node: Pick<ChoiceFacts, 'ofConfig' | 'ofLabel' | 'zone' | 'vpcId'>): Choices {
    const configured = this.#config?.subnetIds ?? [];
    const find = (id: string) => this.#book.find(id);
    return decideChoices({ ...node, configured, onlyNominated: this.#onlyNominated, find });
  }

  use(subnetId: string, count: number): void {
    this.#book.use(subnetId, count);
  }

  block(subnetId: string): void {
    this.#book.block(subnetId);
  }

  problems(): readonly NodeProblem[] {
    return this.#problems;
  }

  config(): SubnetConfig | undefined {
    return this.#config;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { configMaps, refreshMs = REFRESH_MS } = this.#deps;
    const stop = configMaps.subscribe(() => {
      this.#isStale = true;
      this.#change.notify();
    });
    try {
      await configMaps.synced(signal).catch(() => undefined);
      while (!signal.aborted) {
        this.#isStale = false;
        const isDone = await this.#round(signal);
        if (!this.#isStale) await this.#change.wait(isDone ? refreshMs : Math.min(RETRY_MS, refreshMs), signal);
      }
    } finally {
      stop();
    }
  }

  /** Returns whether everything that was asked for is known. */
  async #round(signal: AbortSignal): Promise<boolean> {
    const [map] = [...this.#deps.configMaps.values()];
    const read = readSubnetConfig(map?.data);
    const before = JSON.stringify([this.#isReady, this.#config, this.#problems]);
    const scope = this.#scopeOf(read.config);
    let hasRoom = false;
    try {
      hasRoom = await this.#book.describe(scope, signal);
    } catch (error) {
      if (signal.aborted) return false;
      // What is in force stays; a new configuration waits until its subnets can be looked up.
      this.#deps.observe.onDescribeFailed?.(error);
      this.#deps.log.warn('subnets could not be described, will try again', { error });
      return false;
    }
    const isAsked = scope.vpcIds.length + scope.subnetIds.length > 0;
    this.#adopt(map, read);
    this.#isReady ||= isAsked || read.faults.length > 0;
    this.#deps.observe.onSubnets?.(this.#book.all());
    const isOther = before !== JSON.stringify([this.#isReady, this.#config, this.#problems]);
    if (isOther || hasRoom) for (const listener of this.#listeners) listener();
    return isAsked;
  }

  #scopeOf(candidate: SubnetConfig) {
    const named = [candidate.vpcId, this.#config?.vpcId].filter((id) => id !== undefined);
    const vpcIds = [...new Set([...named, ...this.#deps.vpcIds()])];
    return { vpcIds, subnetIds: [...new Set([...candidate.subnetIds, ...(this.#config?.subnetIds ?? [])])] };
  }

  #adopt(map: ConfigMapEntry | undefined, read: ReturnType<typeof readSubnetConfig>): void {
    const isKnown = (id: string) => this.#book.find(id) !== undefined;
    const facts = { candidate: read.config, hasFaults: read.faults.length > 0, lastGood: this.#config, isKnown };
    const adoption = decideAdoption(facts);
    if (adoption.kind === 'adopt') this.#put(adoption.config, map);
    const stays = adoption.kind === 'keep' ? this.#config?.subnetIds : undefined;
    this.#report(map, renderConfigProblems(read.faults, adoption.unknown, stays), read.notes);
  }

  #put(config: SubnetConfig, map: ConfigMapEntry | undefined): void {
    if (JSON.stringify(config) === JSON.stringify(this.#config)) return;
    this.#deps.log.info('subnets are in force', { subnets: config.subnetIds, vpcId: config.vpcId, name: map?.name });
    // Nothing at all is nothing good: the next that has any subnet is taken.
    this.#config = config.subnetIds.length === 0 ? undefined : config;
  }

  /** Says each thing once, until something else is to be said. */
  #report(map: ConfigMapEntry | undefined, problems: readonly NodeProblem[], notes: readonly string[]): void {
    const { events, log, observe } = this.#deps;
    const said = new Set(this.#problems.map(({ message }) => message));
    this.#problems = problems;
    observe.onConfigProblems?.(map?.name ?? '', problems);
    for (const { reason, message } of problems.filter((one) => !said.has(one.message))) {
      log.error('the subnets of the ConfigMap are wrong', { reason, detail: message });
      if (map !== undefined) events.record({ involved: involvedOf(map), type: 'Warning', reason, message });
    }
    const noted = notes.join('; ');
    if (noted !== '' && noted !== this.#noted) log.info('the ConfigMap has what is not used', { notes });
    this.#noted = noted;
  }
}

function involvedOf({ name, namespace, uid }: ConfigMapEntry) {
  return { apiVersion: 'v1', kind: 'ConfigMap', name, namespace, ...(uid === '' ? {} : { uid }) };
}
