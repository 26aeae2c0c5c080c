import { isDeepStrictEqual } from 'node:util';
import type { Cloud } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { renderSubnetSource } from '../../crd/subnet-source.ts';
import { SUBNETS_CONFIG_MAP } from '../../crd/subnet-supply.ts';
import { LastReports } from '../../kube/reporter.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { namedProblems } from '../../observability/problem-registry.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Fault } from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { ConfigMapEntry } from '../cache/config-map-entry.ts';
import type { Term } from '../calls/term.ts';
import { involvedConfigMap } from '../config/involved-config-map.ts';
import type { IpamdConfig } from '../config/options.ts';
import type { NodeProblem } from '../decide/node-view.ts';
import { type ChoiceFacts, type Choices, decideChoices } from './decide-choices.ts';
import { readPublishedConfig } from './decide-published.ts';
import {
  CONFIG_KEY,
  decideAdoption,
  findZoneContradiction,
  readSubnetConfig,
  renderConfigProblems,
  type SubnetConfig,
} from './decide-subnet-config.ts';
import { SubnetCache, type SubnetState } from './subnet-cache.ts';

/** The subnets of the cluster: their free addresses, and the problems of their configuration. */
export type Subnets = {
  /** False until the configuration and the subnets were read once: no subnet can be selected before. */
  readonly isReady: boolean;
  /** Decides in which subnets a node's new ENIs may be. */
  choicesOf(node: Pick<ChoiceFacts, 'ofConfig' | 'ofLabel' | 'zone' | 'vpcId'>): Choices;
  /**
   * Reports whether an address of a Pod outside of ENIs may be of a subnet: one of the configuration, or one that is used only
   * where it is nominated and is here. The machines' own subnets are none.
   */
  isOffered(subnetId: string, isNominated: boolean): boolean;
  /** Returns all known subnets, whether nodes may use them or not. */
  all(): readonly SubnetState[];
  use(subnetId: string, count: number): void;
  block(subnetId: string): void;
  /** Returns the problems of the ConfigMap, or why its subnets cannot be described; they concern every node. */
  problems(): readonly NodeProblem[];
  /** Returns the configuration in force, for logs and status pages. */
  config(): SubnetConfig | undefined;
  /** Returns which content of the ConfigMap was read last, with the description of its subnets. @see renderSubnetSource */
  source(): string;
  /**
   * Calls the listener when waiting nodes may be able to continue (another configuration, or free addresses where there
   * were none), when the problems change, which every node reports, when another content of the ConfigMap was read, and
   * when the number of free addresses of scarce subnets changes, at most once per description.
   */
  subscribe(listener: (change: SubnetsChange) => void): () => void;
  /** Follows the ConfigMap and describes the subnets until aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
};

/** Which nodes a change concerns. */
type SubnetsChange = {
  /** Nodes that wait for addresses may be able to continue. */
  readonly mayUnblock: boolean;
  /** The problems of the configuration have changed; every node reports them. */
  readonly areProblemsChanged: boolean;
  /**
   * The number of free addresses of a subnet that is or was scarce has changed: the capacity of nodes may have changed.
   */
  readonly isScarcityChanged: boolean;
  /** `source()` is another one. */
  readonly isConfigRead: boolean;
};

const UNCHANGED: SubnetsChange = {
  mayUnblock: false,
  areProblemsChanged: false,
  isScarcityChanged: false,
  isConfigRead: false,
};

/** Dependencies of the subnets. */
type SubnetsDeps = Pick<Term, 'kube' | 'configMaps' | 'clock' | 'log' | 'events' | 'metrics'> & {
  readonly config: Pick<IpamdConfig, 'namespace' | 'configMap' | 'onlyNominatedEniSubnets' | 'allocateNodeCidrs'>;
  readonly cloud: Pick<Cloud, 'subnets'>;
  /** VPCs of the instances, if the ConfigMap names none. */
  readonly vpcIds: () => Iterable<string>;
  /** Called for each subnet that is described with free addresses and was not found full since. */
  readonly onFreeIps?: (subnetId: string) => void;
};

/** More than any instance type may have addresses: a subnet with this many free ones limits no node. */
const SCARCE_IPS = 1_024;

function scarceOf(subnets: readonly SubnetState[]): ReadonlyMap<string, number> {
  const free = subnets.map(({ subnetId, freeIps, isBlocked }) => [subnetId, isBlocked ? 0 : freeIps] as const);
  return new Map(free.filter(([, count]) => count < SCARCE_IPS));
}

/** One call for each hundred subnets. */
const REFRESH_MS = 30_000;
/** After a failure, and while nothing is known. */
const RETRY_MS = 5_000;

/** Opens the subnets of the cluster. Uses no resources except while `run` runs. */
export function openSubnets(deps: SubnetsDeps): Subnets {
  return new ConfiguredSubnets(deps);
}

class ConfiguredSubnets implements Subnets {
  readonly #deps: SubnetsDeps;
  readonly #cache: SubnetCache;
  readonly #onlyNominated: ReadonlySet<string>;
  readonly #listeners = new Set<(change: SubnetsChange) => void>();
  readonly #change: ChangeSignal;
  #isStale = true;
  #isReady = false;
  #config: SubnetConfig | undefined;
  #isLastGoodRead = false;
  readonly #isKnown = (id: string): boolean => this.#cache.find(id) !== undefined;
  #source: string;
  /** Problems of the configuration. The last good configuration stays in force when a later one has faults. */
  #problems: readonly NodeProblem[] = [];
  /** Problems that the cloud's refusal causes, for good or until a person acts. */
  #refused: readonly NodeProblem[] = [];
  readonly #last = new LastReports();
  #scarce: ReadonlyMap<string, number> = new Map();

  constructor(deps: SubnetsDeps) {
    this.#deps = deps;
    this.#cache = new SubnetCache(deps.cloud, deps.clock, deps.onFreeIps);
    this.#onlyNominated = new Set(deps.config.onlyNominatedEniSubnets);
    this.#source = this.#sourceOf(undefined);
    this.#change = new ChangeSignal(deps.clock);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  choicesOf(node: Pick<ChoiceFacts, 'ofConfig' | 'ofLabel' | 'zone' | 'vpcId'>): Choices {
    const configured = this.#config?.subnetIds ?? [];
    const find = (id: string) => this.#cache.find(id);
    return decideChoices({ ...node, configured, onlyNominated: this.#onlyNominated, find });
  }

  isOffered(subnetId: string, isNominated: boolean): boolean {
    if (this.#onlyNominated.has(subnetId)) return isNominated;
    return this.#config?.subnetIds.includes(subnetId) ?? false;
  }

  all(): readonly SubnetState[] {
    return this.#cache.all();
  }

  use(subnetId: string, count: number): void {
    this.#cache.use(subnetId, count);
  }

  block(subnetId: string): void {
    this.#cache.block(subnetId);
  }

  problems(): readonly NodeProblem[] {
    return [...this.#refused, ...this.#problems];
  }

  config(): SubnetConfig | undefined {
    return this.#config;
  }

  source(): string {
    return this.#source;
  }

  subscribe(listener: (change: SubnetsChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { configMaps } = this.#deps;
    const stop = configMaps.subscribe(() => {
      this.#isStale = true;
      this.#change.notify();
    });
    try {
      await configMaps.synced(signal).catch(() => undefined);
      while (!signal.aborted) {
        this.#isStale = false;
        const isDone = await this.#refresh(signal);
        if (!this.#isStale) await this.#change.wait(isDone ? REFRESH_MS : RETRY_MS, signal);
      }
    } finally {
      stop();
    }
  }

  /** Where the first ConfigMap that this leader reads has faults, reads which subnets were in force under the one before. */
  async #readLastGood(signal: AbortSignal): Promise<SubnetConfig | undefined> {
    const { kube, config, log } = this.#deps;
    this.#isLastGoodRead = true;
    const ref = { namespace: config.namespace, name: SUBNETS_CONFIG_MAP };
    const published = await kube.get(CONFIG_MAPS, ref, signal).catch((error: unknown) => {
      if (!signal.aborted) log.warn('the subnets of the last leader could not be read', { error });
      return undefined;
    });
    const subnetIds = readPublishedConfig(published?.['data']);
    return subnetIds.length === 0 ? undefined : { subnetIds };
  }

  /** Runs one pass; returns whether everything that was requested is known. */
  async #refresh(signal: AbortSignal): Promise<boolean> {
    const [map] = [...this.#deps.configMaps.values()];
    const read = readSubnetConfig(map?.data);
    const before = JSON.stringify([this.#isReady, this.#config]);
    const problemsBefore = JSON.stringify(this.problems());
    const scope = this.#scopeOf(read.config);
    let hasNewFreeIps = false;
    try {
      hasNewFreeIps = await this.#cache.describe(scope, signal);
    } catch (error) {
      if (signal.aborted) return false;
      // The configuration in force stays; a new one waits until its subnets can be described.
      this.#deps.metrics.subnetFailures.inc();
      this.#deps.log.warn('subnets could not be described, will try again', { error });
      this.#reportRefusal(map, error);
      this.#notifyListeners(problemsBefore);
      return false;
    }
    this.#refused = [];
    const isDescribed = scope.vpcIds.length + scope.subnetIds.length > 0;
    const isGood = this.#faultsOf(map, read).length === 0 && read.config.subnetIds.every(this.#isKnown);
    if (!isGood && !this.#isLastGoodRead) this.#config ??= await this.#readLastGood(signal);
    this.#adopt(map, read);
    const sourceBefore = this.#source;
    this.#source = this.#sourceOf(map);
    this.#isReady ||= isDescribed || read.faults.length > 0;
    this.#showSubnets();
    const isChanged = before !== JSON.stringify([this.#isReady, this.#config]);
    const scarce = scarceOf(this.#cache.all());
    const isScarcityChanged = isChanged || !isDeepStrictEqual(scarce, this.#scarce);
    this.#scarce = scarce;
    const isConfigRead = sourceBefore !== this.#source;
    const mayUnblock = isChanged || hasNewFreeIps;
    this.#notifyListeners(problemsBefore, { mayUnblock, isScarcityChanged, isConfigRead });
    return isDescribed;
  }

  #sourceOf(map: ConfigMapEntry | undefined): string {
    const { namespace, configMap: name } = this.#deps.config;
    return renderSubnetSource({ namespace, name }, map?.data);
  }

  #findOpen(): readonly SubnetState[] | undefined {
    const ids = this.#config?.subnetIds.filter((id) => !this.#onlyNominated.has(id));
    return ids?.flatMap((id) => this.#cache.find(id) ?? []);
  }

  #notifyListeners(problemsBefore: string, changes: Partial<SubnetsChange> = {}): void {
    const areProblemsChanged = problemsBefore !== JSON.stringify(this.problems());
    const change = { ...UNCHANGED, ...changes, areProblemsChanged };
    if (!Object.values(change).includes(true)) return;
    for (const listener of this.#listeners) listener(change);
  }

  #reportRefusal(map: ConfigMapEntry | undefined, error: unknown): void {
    const isRefused = isCloudError(error, 'never', 'credentials');
    // Once subnets are known, nodes are not affected while the cloud does not answer for a while.
    if (!isRefused && this.#isReady) return;
    const detail = messageOf(error);
    const lastReason = this.#refused[0]?.reason;
    const reason = isRefused ? 'Forbidden' : 'CloudUnreachable';
    this.#refused = [{ reason, message: `subnets cannot be described: ${detail}` }];
    this.#show();
    // The texts of such errors differ only by the id of the request.
    if (lastReason !== reason) this.#recordEvents(map, this.#refused);
  }

  #scopeOf(candidate: SubnetConfig) {
    const named = [candidate.vpcId, this.#config?.vpcId].filter((id) => id !== undefined);
    const vpcIds = [...new Set([...named, ...this.#deps.vpcIds()])];
    return { vpcIds, subnetIds: [...new Set([...candidate.subnetIds, ...(this.#config?.subnetIds ?? [])])] };
  }

  #faultsOf(map: ConfigMapEntry | undefined, read: ReturnType<typeof readSubnetConfig>): readonly Fault[] {
    // Where nodes have podCIDRs, a cluster without any subnet is no fault.
    const isEmpty = (map?.data?.[CONFIG_KEY.subnets] ?? '') === '';
    const ofList = this.#deps.config.allocateNodeCidrs && isEmpty ? [] : (this.#absenceOf(map) ?? read.faults);
    return [...ofList, ...this.#misplaced(read.config)];
  }

  #adopt(map: ConfigMapEntry | undefined, read: ReturnType<typeof readSubnetConfig>): void {
    const faults = this.#faultsOf(map, read);
    const lastGood = this.#config;
    const facts = { candidate: read.config, hasFaults: faults.length > 0, lastGood, isKnown: this.#isKnown };
    const adoption = decideAdoption(facts);
    if (adoption.kind === 'adopt') this.#setConfig(adoption.config, map);
    const inForce = { subnetIds: this.#config?.subnetIds ?? [], isKept: adoption.kind === 'keep' };
    const { vpcIds } = this.#scopeOf(read.config);
    this.#report(map, renderConfigProblems(faults, adoption.unknown, inForce, vpcIds), read.notes);
    this.#reportZones(map, read.config);
  }

  #absenceOf(map: ConfigMapEntry | undefined): readonly Fault[] | undefined {
    if (map !== undefined) return undefined;
    const { namespace, configMap: name } = this.#deps.config;
    const expected = `one with the subnets in data.${CONFIG_KEY.subnets}`;
    return [{ path: `ConfigMap ${namespace}/${name}`, expected, got: 'no such ConfigMap' }];
  }

  /** Lists subnets in another VPC than that of the ConfigMap. */
  #misplaced({ subnetIds, vpcId }: SubnetConfig): readonly Fault[] {
    if (vpcId === undefined) return [];
    return subnetIds.flatMap((id): readonly Fault[] => {
      const actual = this.#cache.find(id)?.vpcId;
      if (actual === undefined || actual === vpcId) return [];
      const expected = `${actual}, which ${id} is in`;
      return [{ path: `data.${CONFIG_KEY.vpc}`, expected, got: vpcId }];
    });
  }

  #setConfig(config: SubnetConfig, map: ConfigMapEntry | undefined): void {
    if (JSON.stringify(config) === JSON.stringify(this.#config)) return;
    this.#deps.log.info('subnets are in force', { subnets: config.subnetIds, vpcId: config.vpcId, name: map?.name });
    // A configuration without subnets is not a good one: the next one with any subnet is adopted.
    this.#config = config.subnetIds.length === 0 ? undefined : config;
  }

  /** Reports each problem once, until the problems change. */
  #report(map: ConfigMapEntry | undefined, problems: readonly NodeProblem[], notes: readonly string[]): void {
    this.#problems = problems;
    this.#show();
    this.#recordEvents(map, this.#last.note('problems', problems, ({ message }) => message) ?? []);
    const noted = this.#last.note('notes', notes) ?? [];
    if (noted.length > 0) this.#deps.log.info('the ConfigMap contains unused settings', { notes });
  }

  /** An event alone: nothing is wrong with the subnets. */
  #reportZones(map: ConfigMapEntry | undefined, { subnetIds }: SubnetConfig): void {
    const subnets = subnetIds.flatMap((id) => this.#cache.find(id) ?? []);
    const found = findZoneContradiction(map?.data?.[CONFIG_KEY.zone], subnets);
    for (const message of this.#last.note('zones', found === undefined ? [] : [found]) ?? [])
      this.#deps.events.record({ involved: this.#involved(map), type: 'Warning', reason: 'ConfigInvalid', message });
  }

  #involved(map: ConfigMapEntry | undefined) {
    return involvedConfigMap(this.#deps.config, map?.uid);
  }

  #showSubnets(): void {
    const { subnetFreeIps, sources } = this.#deps.metrics;
    const all = this.#cache.all();
    subnetFreeIps.replace(all.map(({ subnetId, zone, freeIps }) => [{ subnet: subnetId, zone }, freeIps]));
    sources.openSubnets = this.#findOpen();
  }

  #show(): void {
    const { metrics, config } = this.#deps;
    metrics.problems.reportOfTerm('configmap', namedProblems(config.configMap, this.problems()));
  }

  /** Records events on the ConfigMap, also when it does not exist: that is where people look for them. */
  #recordEvents(map: ConfigMapEntry | undefined, problems: readonly NodeProblem[]): void {
    const { events, log } = this.#deps;
    const involved = this.#involved(map);
    for (const { reason, message } of problems) {
      log.error('the subnets cannot be used as the ConfigMap has them', { reason, detail: message });
      events.record({ involved, type: 'Warning', reason, message });
    }
  }
}
