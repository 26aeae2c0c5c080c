import type { ReconcileResult } from '../../../kube/controller.ts';
import { FreshStore } from '../../../kube/fresh-store.ts';
import type { Informer } from '../../../kube/informer.ts';
import { involvedObject } from '../../../kube/involved-object.ts';
import { Reporter } from '../../../kube/reporter.ts';
import { CILIUM_NODES, NODES } from '../../../kube/resource-types.ts';
import { namedProblems } from '../../../observability/problem-registry.ts';
import type { NecEntry } from '../../cache/decode-nec.ts';
import type { NodeEntry } from '../../cache/node-entry.ts';
import { PODS_BY_NODE, podKeyOf } from '../../cache/pod-facts.ts';
import { isUntouched, restoredReason } from '../../calls/read-input.ts';
import type { Term } from '../../calls/term.ts';
import type { IpamdConfig } from '../../config/options.ts';
import type { NodeFactValues, NodeProblem } from '../../decide/node-view.ts';
import { planAddresses } from '../../decide/plan-addresses.ts';
import type { KnownNodeFacts } from '../../nodes/node-facts.ts';
import { BY_POOL_IP, type CiliumNodeEntry, decodeCiliumNode } from './cilium-node-entry.ts';
import { isSamePool, writePool, writeReleases } from './cilium-node-writer.ts';
import { ciliumProblems, releaseProblems } from './cilium-problems.ts';
import {
  type CiliumPoolDecision,
  type CiliumPoolView,
  ciliumPoolOf,
  decideCiliumPool,
  OWN_ADDRESSES,
} from './decide-cilium-pool.ts';
import {
  type CiliumReleaseDecision,
  type CiliumReleaseSettings,
  decideCiliumRelease,
} from './decide-cilium-release.ts';
import { findSuppliedIps } from './find-supplied-ips.ts';
import { DemandMemory, demandOf, isSameDemand, type NecDemand, writeDemand } from './nec-demand.ts';
import { NOTHING_SEEN, type ReleaseMemory, rememberReleases } from './release-memory.ts';

/** Dependencies of the reconciler of CiliumNodes; one for each term of leadership. */
type CiliumDeps = Pick<Term, 'kube' | 'nodes' | 'necs' | 'pods' | 'clock' | 'log' | 'events' | 'metrics'> & {
  readonly config: Pick<IpamdConfig, 'ipMinWarmTarget' | 'ipMaxWarmTarget'>;
  /** `none`: the cluster has no CiliumNodes. `unknown`: that is not known yet. */
  readonly ciliumNodes: { readonly state: CiliumNodes | 'none' | 'unknown' };
  readonly facts: Pick<KnownNodeFacts, 'viewOf' | 'settingsOf'>;
};

/** The cache of CiliumNodes, with {@link BY_POOL_IP} as an index. */
type CiliumNodes = Pick<Informer<CiliumNodeEntry>, 'get' | 'keys' | 'byIndex' | 'isSynced' | 'progress'>;

/** Two updates of Cilium's agent in a row show that an address is free; a connection of its last Pod may live longer. */
const RELEASE: CiliumReleaseSettings = { unusedMs: 120_000, settleMs: 15_000, answerMs: 300_000 };
/** One round of writes a second for a node: what changes meanwhile is in the next. */
const ROUND_MS = 1_000;
/** A CiliumNode that does not exist is reported after this: Cilium's agent makes it when it starts. */
const MISSING_MS = 120_000;
/** What no event shows, such as a decision about a static address, is looked at again after this. */
const RECHECK_MS = 60_000;
/** A NodeENIConfig that cannot be read, or a cache that is being read. */
const UNREADY_MS = 1_000;

/** What a term knows of one node. */
type Memory = {
  /** Of the CiliumNode with this uid. */
  uid: string;
  releases: ReleaseMemory;
  roundMs: number;
  missingSinceMs: number | undefined;
  readonly demand: DemandMemory;
};

/** What is decided for a node. */
type Plan = {
  readonly pool: ReturnType<typeof ciliumPoolOf>;
  readonly demand: NecDemand;
  readonly decision: CiliumPoolDecision;
  readonly release: CiliumReleaseDecision;
  readonly problems: readonly NodeProblem[];
};

/**
 * Reconciles the CiliumNodes of nodes that Cilium serves with `ipam=crd`: their pool is what the NodeENIConfig has, and
 * the NodeENIConfig gets from them what elsewhere the node's agent writes: demand, offers, and the observed epoch. So
 * ENIs and addresses come and go by the same decisions on every node. CiliumNodes of other nodes are never written.
 */
export class CiliumReconciler {
  readonly #deps: CiliumDeps;
  readonly #memories = new Map<string, Memory>();
  #fresh: FreshStore<CiliumNodeEntry> | undefined;
  readonly #reporter: Reporter<NodeProblem['reason']>;

  constructor(deps: CiliumDeps) {
    this.#deps = deps;
    this.#reporter = new Reporter('a CiliumNode', deps);
  }

  /** Reconciles one node. Idempotent. @throws KubeError of a write or read that failed */
  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const node = this.#deps.nodes.get(name);
    if (node?.isCiliumCrd !== true) return this.#forget(name);
    const nec = this.#deps.necs.get(name);
    // Its return enqueues the node.
    if (nec === undefined || nec.object.metadata.deletionTimestamp !== undefined) return this.#forget(name);
    if (nec.decoded === undefined) return again(RECHECK_MS);
    const memory = this.#memoryOf(name);
    const entry = this.#read(name);
    if (entry === 'reading') return again(UNREADY_MS);
    if (entry === undefined) return await this.#awaitCilium(node, nec, memory, signal);
    memory.missingSinceMs = undefined;
    // The pool is of an earlier object or state: until the cloud is described, nothing is known about its addresses.
    if (entry.ipam.pool.size > 0 && !isDescribed(nec.decoded)) return again(UNREADY_MS);
    return await this.#round(node, nec, { memory, entry }, signal);
  }

  #forget(name: string): ReconcileResult {
    this.#reporter.forget(name);
    if (this.#memories.delete(name)) {
      this.#deps.metrics.sources.ciliumNodes.delete(name);
      this.#showProblems(name, []);
    }
    return { kind: 'done' };
  }

  #memoryOf(name: string): Memory {
    const known = this.#memories.get(name);
    if (known !== undefined) return known;
    const made: Memory = {
      uid: '',
      releases: NOTHING_SEEN,
      roundMs: Number.NEGATIVE_INFINITY,
      missingSinceMs: undefined,
      demand: new DemandMemory(),
    };
    this.#memories.set(name, made);
    return made;
  }

  #read(name: string): CiliumNodeEntry | 'reading' | undefined {
    const informer = this.#deps.ciliumNodes.state;
    if (informer === 'none') return undefined;
    if (informer === 'unknown' || !informer.isSynced) return 'reading';
    // A term follows CiliumNodes once, and to its end.
    this.#fresh ??= new FreshStore(informer, ({ resourceVersion }) => resourceVersion);
    const entry = this.#fresh.get(name);
    return entry?.isLeaving === true ? undefined : entry;
  }

  /** The node gets its first addresses while Cilium's agent makes its object. */
  async #awaitCilium(
    { name, uid }: NodeEntry,
    nec: NecEntry,
    memory: Memory,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock, metrics } = this.#deps;
    const nowMs = clock.monotonicMs();
    memory.missingSinceMs ??= nowMs;
    memory.releases = NOTHING_SEEN;
    const missingMs = nowMs - memory.missingSinceMs;
    const message = 'the Node has the label of Cilium in IPAM mode crd, and there is no CiliumNode of its name';
    const problems: readonly NodeProblem[] = [
      ...(missingMs < MISSING_MS ? [] : [{ reason: 'CiliumNodeMissing', message } as const]),
      ...memory.demand.problems(nowMs),
    ];
    this.#reporter.report(involvedObject(NODES, { name, uid }), problems);
    this.#showProblems(name, problems);
    metrics.sources.ciliumNodes.delete(name);
    // An object that was deleted comes back with the Pods of the node.
    const desired = Math.max(nec.decoded?.spec?.desiredRouteENIIP ?? 0, this.#warmOf(nec).min + OWN_ADDRESSES);
    const demand = demandOf(nec, desired, []);
    if (!isSameDemand(nec, demand) && memory.demand.mayWrite(nec, demand, nowMs))
      await this.#writeDemand(nec, memory, demand, signal);
    return again(missingMs < MISSING_MS ? MISSING_MS - missingMs : RECHECK_MS);
  }

  async #round(
    node: NodeEntry,
    nec: NecEntry,
    { memory, entry }: { readonly memory: Memory; readonly entry: CiliumNodeEntry },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (memory.uid !== entry.uid) {
      memory.releases = NOTHING_SEEN;
      memory.uid = entry.uid;
    }
    const decided = this.#plan(node, nec, { memory, entry });
    const plan = { ...decided, problems: [...decided.problems, ...memory.demand.problems(nowMs)] };
    this.#show(node.name, entry, memory, plan);
    const [main] = plan.problems;
    const status = {
      entries: plan.release.entries,
      error: main === undefined ? '' : `${main.reason}: ${main.message}`,
    };
    const isStatusDue = status.entries.size > 0 || status.error !== entry.ipam.operatorError;
    const isPoolDue = !isSamePool(entry.ipam.pool, plan.pool);
    const isOtherDemand = !isSameDemand(nec, plan.demand);
    const { againMs = Number.POSITIVE_INFINITY } = plan.release;
    const restMs = Math.max(1, Math.min(RECHECK_MS, againMs - nowMs));
    if (isPoolDue || isStatusDue || isOtherDemand) {
      const waitMs = memory.roundMs + ROUND_MS - nowMs;
      if (waitMs > 0) return again(waitMs);
      memory.roundMs = nowMs;
    }
    const isDemandDue = isOtherDemand && memory.demand.mayWrite(nec, plan.demand, nowMs);
    this.#reporter.report(involvedObject(NODES, node), [...releaseProblems(plan.release.reports), ...plan.problems]);
    this.#showProblems(node.name, plan.problems);
    let current: CiliumNodeEntry | undefined = entry;
    if (isPoolDue)
      current = await this.#take('pool', entry, writePool(this.#deps.kube, entry, plan.pool, signal), signal);
    if (isDemandDue && current !== undefined && !(await this.#writeDemand(nec, memory, plan.demand, signal)))
      current = undefined;
    if (isStatusDue && current !== undefined)
      current = await this.#take('releases', entry, writeReleases(this.#deps.kube, current, status, signal), signal);
    return again(current === undefined ? ROUND_MS : restMs);
  }

  #plan(
    { name }: NodeEntry,
    nec: NecEntry,
    { memory, entry }: { readonly memory: Memory; readonly entry: CiliumNodeEntry },
  ): Plan {
    const { clock, facts } = this.#deps;
    const { ipam } = entry;
    const monotonicMs = clock.monotonicMs();
    const answer = facts.viewOf(name, nec);
    const values = answer.kind === 'known' ? answer.values : undefined;
    const view = this.#viewOf(name, nec, entry, values);
    const decision = decideCiliumPool(view);
    const { addresses, spare } = decision;
    // Without them nothing is given back.
    const podIps = values === undefined ? undefined : view.podIps;
    memory.releases = rememberReleases(memory.releases, { node: ipam, addresses, podIps, monotonicMs });
    const release = decideCiliumRelease({
      ...{ node: ipam, memory: memory.releases, addresses, podIps, spare, monotonicMs },
      settings: RELEASE,
    });
    const offers = view.supply.filter(({ ip }) => release.offers.has(ip));
    return {
      pool: ciliumPoolOf(view, release),
      demand: demandOf(nec, decision.desired, offers),
      decision,
      release,
      problems: ciliumProblems(entry, decision, {
        othersWith: (ip) => this.#othersWith(name, ip),
        shortage: shortageOf(nec),
        reports: release.reports,
      }),
    };
  }

  #viewOf(name: string, nec: NecEntry, { ipam }: CiliumNodeEntry, values: NodeFactValues | undefined): CiliumPoolView {
    const { spec = {}, status = {} } = nec.decoded ?? {};
    const pods = this.#deps.pods.byIndex(PODS_BY_NODE, name);
    const isLeaving = values !== undefined && values.leaving !== 'no';
    const supply = findSuppliedIps(status, planAddresses(values ?? {}, status));
    return {
      ipam,
      supply: isLeaving ? supply.map((one) => ({ ...one, isDraining: true })) : supply,
      offered: new Map((spec.releasableIPs ?? []).map(({ ip, assignmentID }) => [ip, assignmentID])),
      podIps: new Map(pods.flatMap((pod) => pod.ips.map((ip) => [ip, podKeyOf(pod)] as const))),
      podKeys: new Set(pods.map(podKeyOf)),
      registered: values?.registered ?? new Set(),
      elsewhere: new Set(supply.filter(({ ip }) => this.#othersWith(name, ip).length > 0).map(({ ip }) => ip)),
      warm: this.#warmOf(nec),
      floor: isLeaving ? 0 : (spec.desiredRouteENIPodNum ?? 0),
    };
  }

  /** Lists other nodes whose pools have the address. One without a Node serves no Pods. */
  #othersWith(name: string, ip: string): readonly string[] {
    const informer = this.#deps.ciliumNodes.state;
    if (typeof informer === 'string') return [];
    const all = informer.byIndex(BY_POOL_IP, ip);
    return all.map((one) => one.name).filter((one) => one !== name && this.#deps.nodes.get(one) !== undefined);
  }

  #warmOf({ name, decoded }: NecEntry): { readonly min: number; readonly max: number } {
    const { facts, config } = this.#deps;
    const settings = decoded === undefined ? undefined : facts.settingsOf(name, decoded).settings;
    return {
      min: settings?.routeWarm?.min ?? decoded?.spec?.routeENIIPMinWarmTarget ?? config.ipMinWarmTarget,
      max: settings?.routeWarm?.max ?? decoded?.spec?.routeENIIPMaxWarmTarget ?? config.ipMaxWarmTarget,
    };
  }

  async #take(
    part: 'pool' | 'releases',
    { name }: CiliumNodeEntry,
    write: ReturnType<typeof writePool>,
    signal: AbortSignal,
  ): Promise<CiliumNodeEntry | undefined> {
    const result = await write;
    this.#countWrite(part, result.kind === 'written');
    if (result.kind === 'written') {
      this.#fresh?.note(name, result.entry);
      return result.entry;
    }
    // The agent's writes must not lose against ours again and again: decided again on what is there.
    const read = await this.#deps.kube.get(CILIUM_NODES, { name }, signal);
    this.#fresh?.forget(name);
    if (read !== undefined) this.#fresh?.note(name, decodeCiliumNode(read));
    return undefined;
  }

  async #writeDemand(nec: NecEntry, memory: Memory, demand: NecDemand, signal: AbortSignal): Promise<boolean> {
    const written = await writeDemand(this.#deps.kube, nec, demand, signal);
    this.#countWrite('demand', written !== undefined);
    if (written !== undefined) memory.demand.noteWritten(written, demand, this.#deps.clock.monotonicMs());
    return written !== undefined;
  }

  #countWrite(part: 'pool' | 'releases' | 'demand', isWritten: boolean): void {
    this.#deps.metrics.ciliumWrites.inc({ part, result: isWritten ? 'written' : 'conflict' });
  }

  #showProblems(name: string, problems: readonly NodeProblem[]): void {
    this.#deps.metrics.problems.reportOfTerm(`cilium/${name}`, namedProblems(name, problems));
  }

  #show(name: string, { ipam }: CiliumNodeEntry, { releases }: Memory, { decision }: Plan): void {
    const sinceMs = [...releases.entries.values()].map((one) => one.sinceMs);
    this.#deps.metrics.sources.ciliumNodes.set(name, {
      pool: ipam.pool.size,
      used: ipam.used.size,
      free: decision.free,
      aliveMs: releases.aliveMs,
      oldestReleaseMs: sinceMs.length === 0 ? undefined : Math.min(...sinceMs),
    });
  }
}

/** Reports whether a status says which addresses the node has now. */
function isDescribed(config: NecEntry['decoded']): boolean {
  const { spec = {}, status = {} } = config ?? {};
  return !isUntouched(status) && restoredReason(spec, status) === undefined;
}

/** Returns why the node gets no more addresses, by its condition Ready. */
function shortageOf({ decoded }: NecEntry): string | undefined {
  const ready = decoded?.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'False' || ready.reason === 'CallUnderWay') return undefined;
  return `${ready.reason}${ready.message === undefined || ready.message === '' ? '' : `: ${ready.message}`}`;
}

function again(afterMs: number): ReconcileResult {
  return { kind: 'again', afterMs };
}
