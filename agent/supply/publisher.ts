import type { ChangeSignal } from '../../runtime/change-signal.ts';
import { decideExclusivePublication } from '../exclusive/decide-exclusive-publication.ts';
import type { ExclusiveEniPool } from '../exclusive/exclusive-eni-pool.ts';
import { type Offer, splitWholeEnis } from '../journal/journal-content.ts';
import { type ExclusiveWarmTargets, isQuickRelease, type WarmTargets } from '../journal/supply.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { OutsideDemand } from '../pool/demand.ts';
import type { IpPool } from '../pool/ip-pool.ts';
import type { AgentParts } from '../state/ports.ts';
import { decidePublication, isInForce } from './decide-publication.ts';
import { GATHER_DEMAND_MS } from './may-gather.ts';
import type { NecSource } from './nec-source.ts';
import type { AgentSpec, ObservedNec, Publication } from './publication.ts';
import { POLL_MS, publishWhenChanged } from './publish-when-changed.ts';

/** Dependencies of publishing demand and offers. */
type PublisherDeps = Pick<AgentParts, 'clock' | 'log' | 'journal'> & {
  readonly random: () => number;
  readonly pool: IpPool;
  readonly nec: Pick<NecSource, 'publish'>;
  /** Whole ENIs; absent: nothing is published about them. */
  readonly exclusive?: ExclusivePublishing;
  /** Name of the journal. */
  readonly life: string;
  readonly demandChanged: ChangeSignal;
  readonly warm: () => WarmTargets;
  readonly outside: () => OutsideDemand;
  /** The resources that the node serves; `observed` is the object with what it reports now. */
  readonly readyResources: (observed: ObservedNec) => readonly string[];
  /** Releases all surplus at a time, whatever the object says. */
  readonly isQuickRelease: boolean;
  /** Interval between releases of surplus, milliseconds. */
  readonly releaseEveryMs: number;
  /** Called when addresses are out of use, before they are offered: from then on they may become another node's. */
  readonly withdrawn: (ips: readonly string[]) => void;
  /** Called when addresses returned to use. */
  readonly restored: () => void;
  /** Called with each result, for people. */
  readonly published: (outcome: PublishOutcome) => void;
  readonly metrics: Pick<Metrics, 'publications' | 'offers' | 'journalErrors'>;
};

/** Dependencies of publishing whole ENIs. */
export type ExclusivePublishing = {
  readonly pool: ExclusiveEniPool;
  /** Undefined for a node that has none and may have none. */
  readonly warm: () => ExclusiveWarmTargets | undefined;
  /** Number of Pods and ADDs that need an ENI of the pool and have none. */
  readonly waiting: () => number;
};

type PublishOutcome = 'changed' | 'unchanged' | 'failed';

/** A full disk is not tried again for each Pod that comes or goes. */
const JOURNAL_RETRY_MS = 30_000;

/** Publishes demand and offers whenever they may have changed, until aborted. Never rejects. */
export async function publishDemand(deps: PublisherDeps, signal: AbortSignal): Promise<void> {
  const publisher = new Publisher(deps);
  const failed = (): void => publisher.count('failed');
  await publishWhenChanged({ ...deps, publisher, failed }, signal);
}

/** Carries out a decision, in an order that survives a crash at any point. */
class Publisher {
  readonly #deps: PublisherDeps;
  #lastReleaseMs: number;
  #gatheringSinceMs: number | undefined;
  #lastWriteMs: number;
  /** Whether the last write that was due has failed: what is tried again does not wait. */
  #hasFailed = false;
  /** When something is due if nothing changes, milliseconds since boot; undefined: nothing is. */
  #nextDueMs: number | undefined;
  #mayOfferFromMs = Number.NEGATIVE_INFINITY;

  constructor(deps: PublisherDeps) {
    this.#deps = deps;
    this.#lastReleaseMs = deps.clock.bootMs();
    this.#lastWriteMs = this.#lastReleaseMs;
  }

  /** Counts a result, and reports it. */
  count(outcome: PublishOutcome): void {
    this.#deps.metrics.publications.inc({ outcome });
    this.#deps.published(outcome);
  }

  /** Time until the next pass if nothing changes, milliseconds. */
  nextPassMs(): number {
    if (this.#nextDueMs === undefined) return POLL_MS;
    return Math.min(POLL_MS, Math.max(0, this.#nextDueMs - this.#deps.clock.bootMs()));
  }

  /**
   * Publishes once, if anything is due. Order: offers are recorded and withdrawn; they are written; records of offers
   * that the write took out are erased, and their addresses return to use.
   * @throws KubeError, JournalError
   */
  async publish(signal: AbortSignal): Promise<void> {
    const { nec, journal, pool, metrics } = this.#deps;
    let decision: Publication | undefined;
    // Without an object nothing can be written; its creation is notified.
    this.#nextDueMs = undefined;
    const write = nec.publish((observed) => {
      decision = this.#prepare(observed);
      return decision.isDue ? decision.spec : undefined;
    }, signal);
    const outcome = await write.catch((error: unknown) => {
      this.#hasFailed ||= decision?.isDue === true;
      throw error;
    });
    this.#hasFailed = false;
    if (outcome !== 'nothing') {
      this.count(outcome);
      this.#gatheringSinceMs = undefined;
      this.#lastWriteMs = this.#deps.clock.bootMs();
    }
    metrics.offers.set(journal.load().offers?.length ?? 0);
    if (outcome !== 'changed' || decision === undefined || decision.toRestore.length === 0) return;
    this.#logWrite(decision.spec, decision.toRestore);
    const ips = decision.toRestore.map(({ ip }) => ip);
    journal.eraseOffers(ips);
    const [whole, single] = splitWholeEnis(decision.toRestore);
    pool.restore(single.map(({ ip }) => ip));
    this.#deps.exclusive?.pool.setOffered(whole, false);
    this.#deps.restored();
  }

  #prepare(observed: ObservedNec): Publication {
    const { journal, pool, log, metrics, clock } = this.#deps;
    const nowMs = clock.bootMs();
    const decision = this.#decide(observed, nowMs >= this.#mayOfferFromMs);
    this.#noteWaits(decision);
    try {
      journal.eraseOffers(this.#outOfSupply(decision.toErase));
      journal.putOffers(decision.toOffer);
    } catch (error) {
      // Demand is published all the same: Pods start on a full disk too.
      metrics.journalErrors.inc();
      log.error('offers were not written to the journal, nothing is released', { error });
      this.#mayOfferFromMs = nowMs + JOURNAL_RETRY_MS;
      const without = this.#decide(observed, false);
      this.#noteWaits(without);
      return without;
    }
    if (decision.toOffer.length > 0) {
      const [whole, single] = splitWholeEnis(decision.toOffer);
      pool.withdraw(single.map(({ ip }) => ip));
      this.#deps.withdrawn(single.map(({ ip }) => ip));
      this.#deps.exclusive?.pool.setOffered(whole, true);
      log.info('offering addresses', { ips: single.map(({ ip }) => ip), enis: whole.map(({ eniId }) => eniId) });
    }
    if (decision.isPaced) this.#lastReleaseMs = nowMs;
    return decision;
  }

  #noteWaits({ isDue, gatheringSinceMs, nextReleaseMs }: Publication): void {
    this.#gatheringSinceMs = gatheringSinceMs;
    const writeMs = isDue || gatheringSinceMs === undefined ? undefined : gatheringSinceMs + GATHER_DEMAND_MS;
    const dueMs = [writeMs, nextReleaseMs].filter((ms) => ms !== undefined);
    this.#nextDueMs = dueMs.length === 0 ? undefined : Math.min(...dueMs);
  }

  /**
   * Lists the ended offers whose address the recorded supply no longer assigns. While an older supply is on record,
   * only the offer's record keeps the address out of use at the next start.
   */
  #outOfSupply(ended: readonly Offer[]): readonly string[] {
    if (ended.length === 0) return [];
    const { supply } = this.#deps.journal.load();
    const recorded = supply?.enis.flatMap(({ addresses }) => addresses) ?? [];
    const wholeEnis = (supply?.direct?.enis ?? []).flatMap(({ primary, assignmentId, state }) =>
      state === 'attached' ? primary.map(({ ip }) => ({ ip, assignmentId, state: 'assigned' })) : [],
    );
    const all = [...recorded, ...wholeEnis];
    const assigned = new Map(all.filter(({ state }) => state === 'assigned').map((one) => [one.ip, one]));
    return ended.filter(({ ip, assignmentId }) => assigned.get(ip)?.assignmentId !== assignmentId).map(({ ip }) => ip);
  }

  #decide(observed: ObservedNec, mayOffer: boolean): Publication {
    const { pool, journal, clock, life, warm, outside, readyResources, releaseEveryMs } = this.#deps;
    const targets = warm();
    const [whole, single] = splitWholeEnis(journal.load().offers ?? []);
    const offers = new Map(single.map((offer): [string, Offer] => [offer.ip, offer]));
    const published = decidePublication({
      ...{ offers, life, mayOffer },
      pool: pool.state,
      nec: observed,
      warm: targets,
      outside: outside(),
      pacing: {
        nowMs: clock.bootMs(),
        lastReleaseMs: this.#lastReleaseMs,
        isQuick: isQuickRelease(this.#deps.isQuickRelease, targets),
        everyMs: releaseEveryMs,
      },
      ...(!this.#hasFailed && {
        gathering: {
          forMs: GATHER_DEMAND_MS,
          sinceMs: this.#gatheringSinceMs,
          lastWriteMs: this.#lastWriteMs,
        },
      }),
      readyResources: readyResources(observed),
    });
    return this.#withExclusive(published, observed, { offers: whole, mayOffer });
  }

  /** Adds the fields about whole ENIs. Both kinds go in one write, and at one pace. */
  #withExclusive(
    published: Publication,
    observed: ObservedNec,
    { offers, mayOffer }: { readonly offers: readonly Offer[]; readonly mayOffer: boolean },
  ): Publication {
    const { exclusive, pool, life, clock, releaseEveryMs, outside } = this.#deps;
    if (exclusive === undefined || observed.exclusive === undefined) return published;
    const nextMs = this.#lastReleaseMs + releaseEveryMs;
    const part = decideExclusivePublication({
      ...{ offers, mayOffer, observed: observed.exclusive },
      pool: exclusive.pool.state,
      warm: exclusive.warm(),
      waiting: exclusive.waiting(),
      maxPods: outside().maxPods,
      nowMs: clock.bootMs(),
      registered: exclusive.pool.registered,
      isCurrent: isInForce(pool.state, observed, life),
      isIntervalOver: clock.bootMs() >= nextMs,
    });
    const isPaced = published.isPaced || part.isPaced;
    const leftMs = part.isLeft ? (isPaced ? clock.bootMs() + releaseEveryMs : nextMs) : undefined;
    const nextReleaseMs = Math.min(
      published.nextReleaseMs ?? Number.POSITIVE_INFINITY,
      leftMs ?? Number.POSITIVE_INFINITY,
    );
    return {
      ...published,
      spec: { ...published.spec, ...(part.spec === undefined ? {} : { exclusive: part.spec }) },
      isDue: published.isDue || part.isDue,
      toOffer: [...published.toOffer, ...part.toOffer],
      isPaced,
      toErase: [...published.toErase, ...part.toErase],
      toRestore: [...published.toRestore, ...part.toRestore],
      ...(Number.isFinite(nextReleaseMs) ? { nextReleaseMs } : {}),
    };
  }

  #logWrite({ desired }: AgentSpec, restored: readonly Offer[]): void {
    this.#deps.log.info('offers taken back', { ips: restored.map(({ ip }) => ip), desired });
  }
}
