import { isKubeError } from '../../../kube/kube-error.ts';
import type { PodRoutes } from '../../../pod-routes/route-cache.ts';
import { type BackoffSettings, backoffMs } from '../../../runtime/backoff.ts';
import { ChangeSignal } from '../../../runtime/change-signal.ts';
import { isSameNode, type NodeEntry } from '../../cache/node-entry.ts';
import type { Term } from '../../calls/term.ts';
import type { CidrBlocks } from '../../config/cidr-blocks.ts';
import type { IpamdConfig } from '../../config/options.ts';
import { type BlockState, type CidrNode, doubtGift, observeBlocks, takeBack } from './block-state.ts';
import { type Moment, recordOf, stateOf } from './convert-record.ts';
import { decidePodCidrs } from './decide-pod-cidr.ts';
import { failedProblem, PodCidrReports, renderStopped, stoppedProblem, unservedProblem } from './pod-cidr-reports.ts';
import { OutdatedTerm, PodCidrStore } from './pod-cidr-store.ts';
import type { SecondAllocator } from './second-allocator.ts';
import { type WriteOutcome, writePodCidr } from './write-pod-cidr.ts';

/** What podCIDRs are given with. */
type PodCidrDeps = Pick<Term, 'kube' | 'nodes' | 'clock' | 'log' | 'random' | 'events' | 'metrics'> & {
  readonly config: Pick<IpamdConfig, 'namespace' | 'configMap' | 'podCidrHoldMs'>;
  readonly blocks: CidrBlocks;
  /** Of the process. */
  readonly secondAllocator: Pick<SecondAllocator, 'found' | 'note'>;
  /** The last read of the VPC's routes to Pods; undefined when routes cannot be read. */
  readonly routes?: () => PodRoutes | undefined;
  /** Networks of the VPC; undefined while they are not known. No node gets a block that overlaps one. */
  readonly vpcCidrs: () => readonly string[] | undefined;
};

/** Most podCIDRs that are written at once; the rate limit of the client is common to all. */
const MAX_WRITES = 64;
/** Shortest time between two writes of the record, unless a node waits for one. */
const RECORD_INTERVAL_MS = 2_000;
/** Times, subnets and routes change without a change of a Node. */
const CHECK_MS = 5_000;
/** Changes that come within this time are one round: each round reads all Nodes of the cache. */
const ROUND_MS = 100;
/** A Node whose podCIDR was written is written again when the cache does not show it after this. */
const UNSEEN_MS = 30_000;
const RETRY: BackoffSettings = { firstMs: 5_000, maxMs: 60_000, factor: 2, jitter: 0.5 };

/**
 * Gives each Node a podCIDR until aborted. A block is recorded before it is written, and written once. Stops giving when
 * another allocator is found. For the leader only; resolves when no write is under way. Rejects only with a fault of ipamd.
 */
export async function keepPodCidrs(deps: PodCidrDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, random } = deps;
  const reports = new PodCidrReports(deps);
  let attempt = 0;
  while (!signal.aborted) {
    const startedMs = clock.monotonicMs();
    try {
      await new PodCidrTerm(deps, reports).run(signal);
    } catch (error) {
      if (signal.aborted) return;
      if (!isKubeError(error) && !(error instanceof OutdatedTerm)) throw error;
      log.warn('podCIDRs cannot be recorded, and none is given meanwhile; will try again', { error });
    }
    attempt = clock.monotonicMs() - startedMs > RETRY.maxMs ? 1 : attempt + 1;
    await clock.sleep(backoffMs(RETRY, attempt, random()), signal).catch(() => {});
  }
}

/** A failed write, as it is reported. */
type Failure = { readonly tries: number; readonly cidr: string; readonly why: string };

/** The podCIDRs from one load of the record on. */
class PodCidrTerm {
  readonly #deps: PodCidrDeps;
  readonly #store: PodCidrStore;
  readonly #reports: PodCidrReports;
  readonly #change: ChangeSignal;
  /** Writes under way, by uid. */
  readonly #running = new Map<string, Promise<void>>();
  /** Faults of ipamd in writes. */
  readonly #faults: unknown[] = [];
  readonly #failures = new Map<string, Failure>();
  /** Nodes that are not written before a time, by uid; monotonic milliseconds. */
  readonly #pausedUntil = new Map<string, number>();
  #state: BlockState;
  #recordedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: PodCidrDeps, reports: PodCidrReports) {
    this.#deps = deps;
    this.#store = new PodCidrStore(deps.kube, deps.config.namespace);
    this.#reports = reports;
    this.#change = new ChangeSignal(deps.clock);
    this.#state = stateOf(deps.blocks, undefined, [], 0);
  }

  async run(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#deps.nodes.subscribe(({ before, after }) => {
      if (before === undefined || after === undefined || !isSameNode(before, after)) this.#change.notify();
    });
    const ended = new AbortController();
    const signalOfWrites = AbortSignal.any([signal, ended.signal]);
    try {
      const { blocks } = this.#deps;
      this.#state = stateOf(blocks, await this.#store.load(signal), this.#readNodes(), this.#now().monotonicMs);
      while (!signal.aborted) {
        const gifts = await this.#round(signal);
        for (const { node, block } of gifts) this.#start(node, block, signalOfWrites);
        await this.#change.wait(CHECK_MS, signal);
        this.#throwFault();
        await this.#deps.clock.sleep(ROUND_MS, signal).catch(() => {});
      }
    } finally {
      unsubscribe();
      ended.abort(new Error('the term is over'));
      await Promise.all(this.#running.values());
      this.#throwFault();
    }
  }

  /** @throws a fault of ipamd in a write */
  #throwFault(): void {
    if (this.#faults.length > 0) throw this.#faults[0];
  }

  /** Reads, decides, records and reports once; returns what is to be written. @throws KubeError, OutdatedTerm */
  async #round(signal: AbortSignal) {
    const { config, blocks, routes, metrics } = this.#deps;
    const networks = this.#deps.vpcCidrs();
    if (networks === undefined) return [];
    const holdMs = config.podCidrHoldMs;
    const nodes = this.#readNodes();
    const now = this.#now();
    const nowMs = now.monotonicMs;
    const { state: observed, conflicts } = observeBlocks(blocks, this.#state, nodes, nowMs);
    this.#forgetWrites(observed);
    const { found } = this.#deps.secondAllocator;
    const stopped = found === undefined ? '' : renderStopped(found);
    const subnets = networks.filter((cidr) => blocks.overlapping(cidr).length > 0);
    this.#reports.reportCluster(found, blocks.settings.clusterCidrs, subnets);
    const reserved = new Set(subnets.flatMap((cidr) => blocks.overlapping(cidr)));
    const known = routes === undefined ? 'none' : (routes() ?? 'unread');
    const paused = new Set([...this.#running.keys(), ...this.#pausedKeys(nowMs)]);
    const limit = stopped === '' ? MAX_WRITES - this.#running.size : 0;
    const facts = { blocks, nodes, monotonicMs: nowMs, holdMs, routes: known, reserved, paused, limit } as const;
    const { state, gifts, unserved } = decidePodCidrs(observed, facts);
    this.#state = state;
    const record = recordOf(state, { blocks, nodes, reserved, stopped }, now);
    const isDue = nowMs - this.#recordedMs >= RECORD_INTERVAL_MS;
    if (!this.#store.hasTaken(record) || (isDue && !this.#store.isWritten(record))) {
      await this.#store.write(record, signal);
      this.#recordedMs = nowMs;
    }
    const { total: _, ...states } = record.blocks;
    metrics.podCidrBlocks.replace(Object.entries(states).map(([its, count]) => [{ state: its }, count]));
    this.#reports.report([
      ...(found === undefined ? [] : [stoppedProblem(found)]),
      ...conflicts,
      ...unserved.map((node) => unservedProblem(node, record.blocks, blocks.settings.clusterCidrs)),
      ...this.#failedProblems(nodes),
    ]);
    return gifts;
  }

  #start({ name, uid }: CidrNode, block: number, signal: AbortSignal): void {
    const cidr = this.#deps.blocks.cidrOf(block);
    const work = this.#write(name, uid, cidr, signal)
      .catch((error: unknown) => this.#faults.push(error))
      .then(() => {
        this.#running.delete(uid);
        this.#change.notify();
      });
    this.#running.set(uid, work);
  }

  async #write(name: string, uid: string, cidr: string, signal: AbortSignal): Promise<void> {
    const { kube, nodes, metrics, log } = this.#deps;
    const node = nodes.get(name);
    // The Node went after the decision: the next round holds the block.
    if (node?.uid !== uid || signal.aborted) return;
    try {
      const outcome = await writePodCidr(kube, node, cidr, signal);
      metrics.podCidrWrites.inc({ outcome: outcome.kind });
      this.#note(name, uid, cidr, outcome);
      if (outcome.kind === 'written') log.info('a node got its podCIDR', { node: name, cidr });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #note(node: string, uid: string, cidr: string, outcome: WriteOutcome): void {
    const { clock, random, secondAllocator } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (outcome.kind === 'refused' || outcome.kind === 'uncertain') {
      const tries = (this.#failures.get(uid)?.tries ?? 0) + 1;
      this.#pausedUntil.set(uid, nowMs + backoffMs(RETRY, tries, random()));
      this.#failures.set(uid, { tries, cidr, why: outcome.error.message });
      this.#state =
        outcome.kind === 'refused'
          ? takeBack(this.#state, uid, outcome.error.code !== 'CONFLICT')
          : doubtGift(this.#state, uid, nowMs);
      return;
    }
    this.#failures.delete(uid);
    this.#pausedUntil.set(uid, nowMs + UNSEEN_MS);
    if (outcome.kind !== 'other') return;
    this.#state = takeBack(this.#state, uid);
    // A write of a former leader of ours has the annotation.
    if (!outcome.isOurs) secondAllocator.note({ node, uid, cidr: outcome.podCidrs.join(', ') });
  }

  #forgetWrites({ waitingSince }: BlockState): void {
    for (const uid of this.#failures.keys()) if (!waitingSince.has(uid)) this.#failures.delete(uid);
    for (const uid of this.#pausedUntil.keys()) if (!waitingSince.has(uid)) this.#pausedUntil.delete(uid);
  }

  #pausedKeys(nowMs: number): readonly string[] {
    return [...this.#pausedUntil].flatMap(([uid, untilMs]) => (untilMs > nowMs ? [uid] : []));
  }

  #failedProblems(nodes: readonly CidrNode[]) {
    if (this.#failures.size === 0) return [];
    return nodes.flatMap((node) => {
      const failure = this.#failures.get(node.uid);
      return failure === undefined ? [] : [failedProblem(node, failure.cidr, failure.why)];
    });
  }

  #readNodes(): readonly CidrNode[] {
    return [...this.#deps.nodes.values()].map(toCidrNode);
  }

  #now(): Moment {
    const { clock } = this.#deps;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() };
  }
}

function toCidrNode(node: NodeEntry): CidrNode {
  const { name, uid, createdAt, instanceId, foreignProviderId, podCidrs, isInstance, isLeaving } = node;
  return {
    name,
    uid,
    createdAt,
    machineId: instanceId ?? foreignProviderId,
    podCidrs,
    isServed: isInstance && !isLeaving,
  };
}
