import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { areTooMany, OrphanTracker } from '../../cloud/orphan-tracker.ts';
import { CLUSTER_TAG } from '../../crd/cloud-tags.ts';
import { renderRight } from '../../kube/ask-rights.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { listPages } from '../../kube/list-pages.ts';
import { INGRESSES, SERVICES } from '../../kube/resource-types.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { OrphanOutcome } from '../observability/load-balancer-metrics.ts';
import { listenerNameOf, type OwnerKind, ownerOf } from './balancer-owner.ts';
import { releaseSteps } from './diff-load-balancer.ts';
import { findOrphanBalancers, type OrphanBalancer, type OwnerUids, uidOf } from './find-orphan-balancers.ts';
import { ListenerMemory } from './listener-memory.ts';
import { observeLoadBalancer } from './observe-load-balancer.ts';
import { StepError, StepRunner } from './run-step.ts';
import { OrphanGroupSweep } from './sweep-orphan-groups.ts';

/** Soon after the start, so that a process that never lives for a whole period sweeps too. */
const FIRST_MS = 300_000;
/** An orphan is found in two sweeps, so long apart. */
const APART_MS = 600_000;
const PROBLEM = 'orphans of ingresses';
const LIST_INGRESSES = { verb: 'list', group: INGRESSES.group, resource: 'ingresses' };

/** The objects that load balancers were made for. */
type Owners = Pick<Informer<KubeObject>, 'isSynced' | 'values'>;

const KINDS = {
  service: { resource: SERVICES, what: 'a Service' },
  ingress: { resource: INGRESSES, what: 'an Ingress' },
} as const;

/**
 * Compares the load balancers of the cluster with their owners, now and then. One whose owner went without its release,
 * as when its finalizer is removed by hand, is reported, and deleted with --delete-orphan-load-balancers; so are the security
 * groups of such Services.
 */
export class OrphanSweep {
  readonly #deps: ControllerDeps;
  readonly #services: Owners;
  readonly #ingresses: Owners | undefined;
  readonly #mayAct: () => boolean;
  readonly #groups: OrphanGroupSweep;
  readonly #tracker = new OrphanTracker<OrphanBalancer>(({ balancer }) => balancer.loadBalancerId);
  #hasCandidates = false;

  /**
   * @param ingresses undefined: Ingresses are not served, and their load balancers are not looked at
   * @param mayAct whether this program keeps load balancers now: another one may
   */
  constructor(deps: ControllerDeps, services: Owners, ingresses: Owners | undefined, mayAct: () => boolean) {
    this.#deps = deps;
    this.#services = services;
    this.#ingresses = ingresses;
    this.#mayAct = mayAct;
    this.#groups = new OrphanGroupSweep(deps);
  }

  /** Sweeps until aborted; ends then. Faults of the cloud and of the API server are logged, and tried the next time. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, config, log, metrics } = this.#deps;
    let waitMs = Math.min(FIRST_MS, config.orphanBalancerPeriodMs);
    try {
      for (;;) {
        await clock.sleep(waitMs, signal);
        try {
          await this.#sweep(signal);
        } catch (error) {
          signal.throwIfAborted();
          if (!isCloudError(error) && !isKubeError(error)) throw error;
          log.warn('orphaned load balancers were not looked for', { error });
        }
        waitMs = Math.min(config.orphanBalancerPeriodMs, this.#hasCandidates ? APART_MS : Number.POSITIVE_INFINITY);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      metrics.loadBalancers.onOrphans(0);
      metrics.problems.report(PROBLEM, []);
    }
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    const { cloud, clock, config, log, metrics } = this.#deps;
    const { clusterId } = config;
    if (!this.#mayAct() || !this.#services.isSynced) return;
    const query = { tag: { key: CLUSTER_TAG, value: clusterId } };
    const { loadBalancers, isConsistent } = await cloud.loadBalancers.find(query, this.#contextOf(signal));
    if (!isConsistent) {
      log.warn('load balancers changed while they were listed; orphans are looked for the next time');
      return;
    }
    // After the load balancers: what has an owner by now is none.
    const uids = await this.#uids(signal);
    const nowMs = clock.nowMs();
    const orphans = findOrphanBalancers(clusterId, loadBalancers, uids, nowMs);
    metrics.loadBalancers.onOrphans(orphans.length);
    this.#hasCandidates = orphans.length > 0;
    const kindsOf = (tagged: (typeof loadBalancers)[number]): readonly OwnerKind[] =>
      [...uids.keys()].filter((kind) => uidOf(clusterId, tagged, kind) !== undefined);
    const ownCount = loadBalancers.filter((balancer) => kindsOf(balancer).length > 0).length;
    if (areTooMany(orphans.length, ownCount)) return this.#reportTooMany(orphans.length, ownCount);
    const due = this.#tracker.note(orphans, clock.monotonicMs(), APART_MS);
    // No new candidate waits for its second sweep.
    this.#hasCandidates = due.length < orphans.length;
    // When no owner is known of any of them, it is the owners that were lost, or the cluster's id is wrong.
    const isPlausible = loadBalancers.some((balancer) =>
      kindsOf(balancer).some((kind) => uids.get(kind)?.has(uidOf(clusterId, balancer, kind) ?? '') === true),
    );
    let left = config.deletesOrphanBalancers ? config.orphanBalancerLimit : 0;
    for (const orphan of due) {
      if (config.deletesOrphanBalancers && !isPlausible) {
        this.#report(
          orphan,
          `it is not deleted: no load balancer of this cluster has its ${this.#names()[0]}. Were ${this.#names()[1]} lost, or is --clusterid that of another cluster? Otherwise delete it in the console`,
        );
        metrics.loadBalancers.onOrphanOutcome('kept');
        continue;
      }
      const outcome = await this.#treat(orphan, left > 0, signal);
      metrics.loadBalancers.onOrphanOutcome(outcome);
      if (outcome === 'deleted' || outcome === 'failed') left -= 1;
    }
    const ofServices = { loadBalancers, uids: uids.get('service') ?? new Set<string>() };
    const swept = { ...ofServices, nowMs, mayDelete: config.deletesOrphanBalancers && isPlausible };
    if (await this.#groups.sweep(swept, this.#contextOf(signal))) this.#hasCandidates = true;
  }

  /** Ingresses are looked at once they are known, and while they may be listed: their rights may be missing, or be taken. */
  async #uids(signal: AbortSignal): Promise<OwnerUids> {
    const { log, metrics } = this.#deps;
    const uids = new Map<OwnerKind, ReadonlySet<string>>();
    uids.set('service', await this.#uidsOf('service', this.#services, signal));
    if (this.#ingresses?.isSynced !== true) return uids;
    try {
      uids.set('ingress', await this.#uidsOf('ingress', this.#ingresses, signal));
      metrics.problems.report(PROBLEM, []);
    } catch (error) {
      if (!isKubeError(error, 'FORBIDDEN')) throw error;
      log.error('orphaned load balancers of Ingresses are not looked for: Ingresses may not be listed', { error });
      metrics.problems.report(PROBLEM, [{ kind: 'Forbidden', name: `${PROBLEM}: ${renderRight(LIST_INGRESSES)}` }]);
    }
    return uids;
  }

  /** Reads the uids of all objects of a kind, of the cache and of the API server: either one may be of a while ago. */
  async #uidsOf(kind: OwnerKind, owners: Owners, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const uids = new Set([...owners.values()].map(({ metadata }) => metadata.uid ?? ''));
    for await (const { items } of listPages(this.#deps.kube, KINDS[kind].resource, {}, signal))
      for (const { metadata } of items) uids.add(metadata.uid ?? '');
    return uids;
  }

  async #treat(orphan: OrphanBalancer, mayDelete: boolean, signal: AbortSignal): Promise<OrphanOutcome> {
    const { config } = this.#deps;
    if (!mayDelete) {
      const cure = config.deletesOrphanBalancers
        ? 'it is deleted in one of the next sweeps, as --orphan-load-balancer-limit says'
        : 'delete it in the console, or set --delete-orphan-load-balancers';
      this.#report(orphan, cure);
      return 'reported';
    }
    try {
      return await this.#delete(orphan, signal);
    } catch (error) {
      if (!isCloudError(error) && !(error instanceof StepError)) throw error;
      signal.throwIfAborted();
      this.#report(orphan, `it could not be deleted: ${error.message}; look at it in the console. It is tried again`);
      return 'failed';
    }
  }

  async #delete(orphan: OrphanBalancer, signal: AbortSignal): Promise<OrphanOutcome> {
    const { cloud, config, events, log } = this.#deps;
    const { balancer, kind, uid } = orphan;
    const { loadBalancerId, isDeleteProtected, isPrepaid } = balancer;
    const keep = (why: string): OrphanOutcome => {
      this.#report(orphan, `it is not deleted: ${why}`);
      return 'kept';
    };
    if (isDeleteProtected) return keep('it is protected against deletion; take the protection off, or leave it');
    if (isPrepaid) return keep('it is paid for in advance, and only the console can return it');
    const owner = ownerOf(config.clusterId, uid, kind);
    const listenerName = listenerNameOf(config.clusterId, uid, kind);
    const context = this.#contextOf(signal);
    const claim = new ListenerMemory().claimOf(listenerName);
    const view = await observeLoadBalancer({ cloud }, { owner, ...claim, loadBalancerId }, context);
    // What was listed may have changed since.
    if (view.kind !== 'found' || !view.observed.isOwn) return 'kept';
    if (view.observed.balancer.loadBalancerId !== loadBalancerId) return 'kept';
    const foreign = view.observed.listeners.find(({ name }) => name !== listenerName);
    if (foreign !== undefined)
      return keep(`its listener ${foreign.listenerId} (${foreign.name}) is of somebody else; delete it by hand`);
    const runner = new StepRunner({ cloud }, view.observed, listenerName);
    for (const step of releaseSteps(listenerName, view.observed)) await runner.run(step, context);
    const message = `${textOf(orphan)}; it was deleted, as --delete-orphan-load-balancers says`;
    log.info('an orphaned load balancer is deleted', { loadBalancerId, uid });
    events.record({ involved: this.#involved(), type: 'Normal', reason: 'OrphanLoadBalancerDeleted', message });
    return 'deleted';
  }

  #reportTooMany(orphans: number, all: number): void {
    this.#tracker.clear();
    const message = `${orphans} of the ${all} load balancers of this cluster seem to have no ${this.#names()[0]}; none is deleted. Were ${this.#names()[1]} lost, or is --clusterid that of another cluster?`;
    this.#deps.log.error('too many load balancers seem to be orphans', { orphans, all });
    this.#deps.events.record({ involved: this.#involved(), type: 'Warning', reason: 'OrphanLoadBalancer', message });
  }

  #report(orphan: OrphanBalancer, cure: string): void {
    const message = `${textOf(orphan)}; ${cure}`;
    this.#deps.log.warn('an orphaned load balancer', { loadBalancerId: orphan.balancer.loadBalancerId, message });
    this.#deps.events.record({ involved: this.#involved(), type: 'Warning', reason: 'OrphanLoadBalancer', message });
  }

  /** The owners that load balancers may have. */
  #names(): readonly [string, string] {
    return this.#ingresses === undefined ? ['Service', 'Services'] : ['Service or Ingress', 'Services or Ingresses'];
  }

  #involved() {
    return { apiVersion: 'v1', kind: 'Namespace', name: this.#deps.config.namespace };
  }

  #contextOf(signal: AbortSignal): CallContext {
    return { priority: 'gc', owner: 'orphans', signal, timeoutMs: this.#deps.config.cloudTimeoutMs };
  }
}

function textOf({ balancer, kind, uid }: OrphanBalancer): string {
  const { loadBalancerId, name, vips, domain } = balancer;
  const address = [...vips, domain].filter((one) => one !== '').join(', ');
  return `the load balancer ${loadBalancerId} (${name}, ${address}) was made for ${KINDS[kind].what} with the uid ${uid}, which does not exist any more`;
}
