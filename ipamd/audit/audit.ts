import type { CallContext, Cloud, Eni } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { areTooMany, OrphanTracker } from '../../cloud/orphan-tracker.ts';
import { ENI_TAG, isOwnEni } from '../../crd/cloud-tags.ts';
import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { CloudSnapshot, ObservedEni } from '../decide/decision.ts';
import type { Drift } from '../decide/evaluate-drift.ts';
import type { IpamdEventReason } from '../events/event-reasons.ts';
import { collectOrphan, type OrphanOutcome } from './collect-orphan.ts';
import { collectEniNames, type EniNames, type NamingObject } from './eni-names.ts';
import { findOrphans, type Orphan } from './find-orphans.ts';
import { groupEnisByNode } from './group-enis-by-node.ts';

/** A NodeENIConfig as the cache contains it. */
export type AuditedNec = { readonly object: KubeObject; readonly decoded: NodeEniConfig | undefined };

/** Recorder for events about orphans. */
export type AuditEvents = {
  record(event: {
    readonly involved: {
      readonly apiVersion: string;
      readonly kind: string;
      readonly name: string;
      readonly namespace?: string;
    };
    readonly type: 'Normal' | 'Warning';
    readonly reason: IpamdEventReason;
    readonly message: string;
  }): void;
};

/** Why an audit had no result. */
type AuditSkip = 'NotSynced' | 'SweepFailed' | 'SweepInconsistent';

/** Findings and actions of one audit. */
export type AuditReport =
  | { readonly kind: 'skipped'; readonly why: AuditSkip }
  | {
      readonly kind: 'done';
      /** ENIs of the cluster in the cloud, without primary ones. */
      readonly enis: number;
      /** Nodes that were asked to describe the cloud. */
      readonly drifted: readonly string[];
      readonly orphans: readonly Orphan[];
      /** Too many to be plausible: no orphan was changed. */
      readonly isAlarming: boolean;
      /** Outcome by ENI; of a dry run `later`. */
      readonly outcomes: ReadonlyMap<string, OrphanOutcome>;
    };

/** Callback for each audit; the metrics use it. */
export type AuditObserver = { onAudit(report: AuditReport, tookMs: number): void };

/** Dependencies of the audit; one for each term of leadership. */
export type AuditDeps = {
  readonly cloud: Pick<Cloud, 'enis' | 'tasks' | 'instances'>;
  /** Every NodeENIConfig of the cache, unreadable ones included. */
  readonly necs: { values(): Iterable<AuditedNec>; get(name: string): AuditedNec | undefined };
  /** Other objects that may name ENIs or have intents (VpcENIs). Default: none. */
  readonly others?: () => Iterable<KubeObject>;
  /** Instances of the cluster's nodes, whether they have a NodeENIConfig or not. */
  readonly instanceIds: () => Iterable<string>;
  /** Tells whether the cluster may have ENIs: without any, the cloud is not asked for them. Default: it may. */
  readonly mayHaveEnis?: () => boolean;
  /** Tells whether every cache that the audit reads has its first list. */
  readonly isSynced: () => boolean;
  /** Reads a NodeENIConfig from the API server itself: the cache may be behind. */
  readonly readNec: (name: string, signal: AbortSignal) => Promise<KubeObject | undefined>;
  /** Reads another object that may name ENIs, by its name, from the API server itself. Default: there is none. */
  readonly readOther?: (name: string, signal: AbortSignal) => Promise<KubeObject | undefined>;
  /** Tells whether objects were lost a short time ago: no orphan is deleted then. Default: never. */
  readonly isRebuilding?: () => boolean;
  /** Reads what `convertEni` needs for these ENIs. Default: nothing. @throws CloudError */
  readonly loadSubnets?: (enis: readonly Eni[], context: CallContext) => Promise<void>;
  /** Returns the node of a static ENI, whatever its tags; default: none is static. */
  readonly staticNodeOf?: (eniId: string) => string | undefined;
  /** Converts an ENI to the terms of the NodeENIConfig, as the reconcile of its node does. */
  readonly convertEni: (eni: Eni) => ObservedEni;
  readonly findDrift: (status: NodeEniConfigStatus, snapshot: CloudSnapshot) => readonly Drift[];
  /** Makes a node describe the cloud and repair its object. */
  readonly requestRepair: (name: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: AuditEvents;
  readonly observe?: AuditObserver;
};

/** Settings of the audit. */
export type AuditSettings = {
  readonly clusterId: string;
  readonly syncIntervalMs: number;
  readonly orphanGraceMs: number;
  readonly orphanLimit: number;
  readonly isDryRun: boolean;
  /** Of ipamd: events about orphaned ENIs are recorded on it. */
  readonly namespace: string;
};

/** The pages of a large VPC take long at the lowest priority. */
const SWEEP_TIMEOUT_MS = 600_000;
const COLLECT_TIMEOUT_MS = 120_000;
const LOST = 'definitions of resources were lost a short time ago, its object may be restored from a backup';
/** Names that the API server accepts. */
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
/** Part of the interval after which a failed audit is repeated. */
const RETRY_SHARE = 0.2;
/** Number of orphans in one line of the log. */
const MAX_LISTED = 20;

/**
 * Compares all objects of the cluster with all its ENIs periodically, by one paged sweep. Nodes that differ describe
 * the cloud; orphaned ENIs are deleted in the end.
 */
export class Audit {
  #deps: AuditDeps;
  #settings: AuditSettings;
  readonly #tracker = new OrphanTracker<Orphan>(({ eniId }) => eniId);

  constructor(deps: AuditDeps, settings: AuditSettings) {
    this.#deps = deps;
    this.#settings = settings;
  }

  /** Runs one audit each interval until aborted; the first after one interval. Rejects with the signal's reason. */
  async run(signal: AbortSignal): Promise<never> {
    const { clock } = this.#deps;
    let waitMs = this.#settings.syncIntervalMs;
    for (;;) {
      await clock.sleep(waitMs, signal);
      if (this.#deps.mayHaveEnis?.() === false) continue;
      const report = await this.runOnce(signal);
      waitMs = this.#settings.syncIntervalMs * (report.kind === 'skipped' ? RETRY_SHARE : 1);
    }
  }

  /** Runs one audit. Changes nothing when its data is not reliable. Rejects with the signal's reason only. */
  async runOnce(signal: AbortSignal): Promise<AuditReport> {
    const { clock, observe, log } = this.#deps;
    const startedMs = clock.monotonicMs();
    const report = await this.#audit(signal);
    observe?.onAudit(report, clock.monotonicMs() - startedMs);
    if (report.kind === 'skipped') log.warn('audit skipped', { why: report.why });
    return report;
  }

  async #audit(signal: AbortSignal): Promise<AuditReport> {
    const { cloud, isSynced, log } = this.#deps;
    if (!isSynced()) return { kind: 'skipped', why: 'NotSynced' };
    const before = this.#versions();
    const tag = { key: ENI_TAG.cluster, value: this.#settings.clusterId };
    let enis: readonly Eni[];
    try {
      const sweep = await cloud.enis.sweep({ tag }, contextOf(signal, SWEEP_TIMEOUT_MS));
      if (!sweep.isConsistent) return { kind: 'skipped', why: 'SweepInconsistent' };
      enis = sweep.enis.filter((eni) => !eni.isPrimary);
      await this.#deps.loadSubnets?.(enis, contextOf(signal, SWEEP_TIMEOUT_MS));
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      log.warn('audit: the sweep failed', { error: error.message });
      return { kind: 'skipped', why: 'SweepFailed' };
    }
    if (!isSynced()) return { kind: 'skipped', why: 'NotSynced' };
    const drifted = this.#requestRepairs(enis, before);
    const orphans = findOrphans(this.#settings.clusterId, enis, this.#names());
    const ownCount = enis.filter(({ tags }) => isOwnEni(tags, this.#settings.clusterId)).length;
    const isAlarming = areTooMany(orphans.length, ownCount);
    if (isAlarming) this.#alarm(orphans, ownCount);
    const due = isAlarming ? [] : this.#dueOrphans(orphans);
    const outcomes = await this.#collect(due, signal);
    return { kind: 'done', enis: enis.length, drifted, orphans, isAlarming, outcomes };
  }

  #versions(): ReadonlyMap<string, string | undefined> {
    const versions = new Map<string, string | undefined>();
    for (const { object } of this.#deps.necs.values()) {
      versions.set(object.metadata.name, object.metadata.resourceVersion);
    }
    return versions;
  }

  /**
   * Requests a repair of nodes that differ. A node whose object changed during the sweep is left for the next audit: it
   * may differ for that reason alone.
   */
  #requestRepairs(enis: readonly Eni[], before: ReadonlyMap<string, string | undefined>): readonly string[] {
    const { necs, convertEni, findDrift, requestRepair, log, staticNodeOf } = this.#deps;
    const all = [...necs.values()];
    const owners = all.map(({ object, decoded }) => ({
      name: object.metadata.name,
      uid: object.metadata.uid,
      instanceId: decoded?.status?.instanceID,
    }));
    const groups = groupEnisByNode(enis, owners, staticNodeOf);
    const unchanged = all.filter(({ object: { metadata } }) => before.get(metadata.name) === metadata.resourceVersion);
    const drifted: string[] = [];
    for (const { object, decoded } of unchanged) {
      if (decoded === undefined) continue;
      const { name } = object.metadata;
      const observed = (groups.get(name) ?? []).map((eni) => [eni.eniId, convertEni(eni)] as const);
      const drifts = findDrift(decoded.status ?? {}, { enis: new Map(observed), isComplete: true });
      if (drifts.length === 0) continue;
      log.warn('object and cloud differ', { node: name, drifts: drifts.slice(0, MAX_LISTED), count: drifts.length });
      drifted.push(name);
      requestRepair(name);
    }
    return drifted;
  }

  #names(): EniNames {
    const { necs, others, instanceIds } = this.#deps;
    const objects = [...necs.values()].map(namingNec);
    const more = [...(others?.() ?? [])].map((object) => ({ name: object.metadata.name, object, isTrusted: true }));
    return collectEniNames([...objects, ...more], instanceIds());
  }

  #dueOrphans(orphans: readonly Orphan[]): readonly Orphan[] {
    const { orphanGraceMs, orphanLimit } = this.#settings;
    const due = this.#tracker.note(orphans, this.#deps.clock.monotonicMs(), orphanGraceMs);
    // ENIs on an instance may have to stay there: they must not use up the limit for the others.
    return due.toSorted((a, b) => Number(isBound(a)) - Number(isBound(b))).slice(0, orphanLimit);
  }

  #alarm(orphans: readonly Orphan[], eniCount: number): void {
    this.#tracker.clear();
    const text = `${orphans.length} of the ${eniCount} ENIs that ipamd created for this cluster have no owner; none is deleted. Were NodeENIConfigs lost, or is --clusterid that of another cluster?`;
    this.#deps.log.error('too many orphaned ENIs', { orphans: orphans.slice(0, MAX_LISTED), enis: eniCount });
    this.#recordEvent('Warning', 'TooManyOrphanENIs', text);
  }

  async #collect(due: readonly Orphan[], signal: AbortSignal): Promise<ReadonlyMap<string, OrphanOutcome>> {
    const outcomes = new Map<string, OrphanOutcome>();
    for (const { eniId } of due) {
      const orphan = await this.#confirm(eniId, signal);
      if (orphan === undefined) continue;
      const reprieve = this.#settings.isDryRun ? 'dry run' : this.#deps.isRebuilding?.() === true ? LOST : undefined;
      const outcome: OrphanOutcome =
        reprieve !== undefined
          ? { kind: 'later', why: reprieve }
          : await collectOrphan(this.#deps.cloud, orphan, contextOf(signal, COLLECT_TIMEOUT_MS));
      outcomes.set(eniId, outcome);
      this.#deps.log.info('orphaned ENI', { ...orphan, ...outcome, outcome: outcome.kind });
      this.#reportOutcome(orphan, outcome);
    }
    return outcomes;
  }

  /** Checks an orphan once more: the ENI, the cache, the object in its tag and its VpcENI. Undefined when it has an owner now. */
  async #confirm(eniId: string, signal: AbortSignal): Promise<Orphan | undefined> {
    const { cloud, readNec, isSynced, log } = this.#deps;
    try {
      const enis = await cloud.enis.describe([eniId], contextOf(signal, COLLECT_TIMEOUT_MS));
      const [orphan] = findOrphans(this.#settings.clusterId, enis, this.#names());
      if (orphan === undefined) return undefined;
      const object = orphan.nodeName === undefined ? undefined : await readNec(orphan.nodeName, signal);
      // A VpcENI is named as its ENI, or by the ENI's id.
      const names = [...new Set([orphan.name, orphan.eniId])].filter((name) => OBJECT_NAME.test(name));
      const others = await Promise.all(names.map((name) => this.#deps.readOther?.(name, signal)));
      const tagged = [object, ...others].flatMap((one) =>
        one === undefined ? [] : [{ name: one.metadata.name, object: one, isTrusted: true }],
      );
      const [left] = findOrphans(this.#settings.clusterId, enis, collectEniNames(tagged, []));
      // The cache is read again, because the answer took some time.
      const [last] = findOrphans(this.#settings.clusterId, enis, this.#names());
      return left === undefined || !isSynced() ? undefined : last;
    } catch (error) {
      signal.throwIfAborted();
      log.warn('an orphaned ENI could not be checked', { eniId, error: String(error) });
      return undefined;
    }
  }

  #reportOutcome(orphan: Orphan, outcome: OrphanOutcome): void {
    const whose = orphan.nodeName === undefined ? '' : `, made for node ${orphan.nodeName}`;
    const what = `ENI ${orphan.eniId} (${orphan.name}${whose})`;
    if (outcome.kind === 'deleted')
      this.#recordEvent('Normal', 'OrphanENIDeleted', `${what} had no owner and is deleted`);
    else if (outcome.kind === 'later')
      this.#recordEvent('Warning', 'OrphanENI', `${what} has no owner: ${outcome.why}`);
    else this.#recordEvent('Warning', 'OrphanENI', `${what} has no owner and could not be deleted: ${outcome.message}`);
  }

  /** Records an event on ipamd's namespace: such an ENI belongs to no object of the cluster any more. */
  #recordEvent(type: 'Normal' | 'Warning', reason: IpamdEventReason, message: string): void {
    const involved = { apiVersion: 'v1', kind: 'Namespace', name: this.#settings.namespace };
    this.#deps.events.record({ involved, type, reason, message });
  }
}

function namingNec({ object, decoded }: AuditedNec): NamingObject {
  const { spec, status } = decoded ?? {};
  // The agent has seen a later epoch than the object has: an older state was restored.
  const isRestored = (spec?.observedSupplyEpoch ?? 0) > (status?.supplyEpoch ?? 0);
  return { name: object.metadata.name, object, isTrusted: decoded !== undefined && !isRestored };
}

function isBound({ instanceId }: Orphan): boolean {
  return instanceId !== undefined;
}

/** Builds the context of a call: lowest priority, with the audit as one owner among the nodes. */
function contextOf(signal: AbortSignal, timeoutMs: number): CallContext {
  return { priority: 'gc', owner: 'audit', signal, timeoutMs };
}
