import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import type { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Journal, Offer } from '../journal/journal-content.ts';
import type { WarmTargets } from '../journal/supply.ts';
import type { OutsideDemand } from '../pool/demand.ts';
import type { IpPool } from '../pool/ip-pool.ts';
import type { NecSource } from '../supply/nec-source.ts';
import { decidePublication } from './decide-publication.ts';
import type { AgentSpec, Publication, SeenNec } from './publication.ts';

/** What publishing demand and offers needs. */
export type PublisherDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly journal: Journal;
  readonly pool: IpPool;
  readonly nec: Pick<NecSource, 'publish'>;
  /** Name of the journal. */
  readonly life: string;
  readonly demandChanged: ChangeSignal;
  readonly warm: () => WarmTargets;
  readonly outside: () => OutsideDemand;
  /** What the node serves; `seen` is what the object says it does. */
  readonly readyResources: (seen: SeenNec) => readonly string[];
  /** Gives back all surplus at a time whatever the object says. */
  readonly isQuickRelease: boolean;
  /** Between two times of giving back, in milliseconds. */
  readonly releaseEveryMs: number;
  /** Called when addresses came back into use. */
  readonly restored: () => void;
  readonly observe: PublisherObserver;
};

/** What publishing tells for metrics. */
export type PublisherObserver = {
  published(outcome: 'changed' | 'unchanged' | 'failed'): void;
  offers(count: number): void;
  journalError(): void;
};

/** Bursts of Pods become one write; an ADD that waits must not. */
const GATHER_MS = 50;
/** Looks so often without any sign. */
const LOOK_MS = 60_000;
/** A full disk is not asked again with each Pod that comes or goes. */
const JOURNAL_RETRY_MS = 30_000;
const BACKOFF: BackoffSettings = { firstMs: 500, maxMs: 10_000, factor: 2, jitter: 0.5 };

/** Publishes what the node wants and gives back, whenever it may have changed, until aborted. Never rejects. */
export async function publishDemand(deps: PublisherDeps, signal: AbortSignal): Promise<void> {
  const publisher = new Publisher(deps);
  let failures = 0;
  while (!signal.aborted) {
    // Begun before the look, so that what changes during it is looked at again.
    const woken = deps.demandChanged.wait(publisher.nextLookMs(), signal);
    try {
      await publisher.publish(signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      deps.observe.published('failed');
      deps.log.warn('demand not published, will be tried again', { error, failures });
      await pause(deps, backoffMs(BACKOFF, failures, deps.random()), signal);
      continue;
    }
    await woken;
    await pause(deps, GATHER_MS, signal);
  }
}

async function pause({ clock }: PublisherDeps, ms: number, signal: AbortSignal): Promise<void> {
  await clock.sleep(ms, signal).catch(() => {});
}

/** Does what a decision says, in the order that survives a crash at any point. */
export class Publisher {
  readonly #deps: PublisherDeps;
  #lastPacedMs: number;
  #nextReleaseMs: number | undefined;
  #mayOfferFromMs = Number.NEGATIVE_INFINITY;

  constructor(deps: PublisherDeps) {
    this.#deps = deps;
    this.#lastPacedMs = deps.clock.bootMs();
  }

  /** How long nothing needs to be looked at, unless something changes; milliseconds. */
  nextLookMs(): number {
    if (this.#nextReleaseMs === undefined) return LOOK_MS;
    return Math.min(LOOK_MS, Math.max(0, this.#nextReleaseMs - this.#deps.clock.bootMs()));
  }

  /**
   * Publishes once, if anything is due. Order: offers are recorded and withdrawn; they are written; what the write took
   * out is erased from the record and put back into use.
   * @throws KubeError, JournalError
   */
  async publish(signal: AbortSignal): Promise<void> {
    const { nec, journal, pool, observe } = this.#deps;
    let decision: Publication | undefined;
    // Without an object nothing can be given back, and its coming is told.
    this.#nextReleaseMs = undefined;
    const outcome = await nec.publish((seen) => {
      decision = this.#prepare(seen);
      return decision.isDue ? decision.spec : undefined;
    }, signal);
    if (outcome !== 'nothing') observe.published(outcome);
    observe.offers(journal.load().offers?.length ?? 0);
    if (outcome !== 'changed' || decision === undefined || decision.toRestore.length === 0) return;
    this.#logWrite(decision.spec, decision.toRestore);
    const ips = decision.toRestore.map(({ ip }) => ip);
    journal.eraseOffers(ips);
    pool.restore(ips);
    this.#deps.restored();
  }

  #prepare(seen: SeenNec): Publication {
    const { journal, pool, log, observe, clock } = this.#deps;
    const nowMs = clock.bootMs();
    const decision = this.#decide(seen, nowMs >= this.#mayOfferFromMs);
    this.#nextReleaseMs = decision.nextReleaseMs;
    try {
      journal.eraseOffers(this.#outOfSupply(decision.toForget));
      journal.putOffers(decision.toOffer);
    } catch (error) {
      // Demand goes out all the same: on a full disk Pods start too.
      observe.journalError();
      log.error('journal did not take offers, nothing is given back', { error });
      this.#mayOfferFromMs = nowMs + JOURNAL_RETRY_MS;
      const without = this.#decide(seen, false);
      this.#nextReleaseMs = without.nextReleaseMs;
      return without;
    }
    if (decision.toOffer.length > 0) {
      pool.withdraw(decision.toOffer.map(({ ip }) => ip));
      log.info('offering addresses', { ips: decision.toOffer.map(({ ip }) => ip) });
    }
    if (decision.isPaced) this.#lastPacedMs = nowMs;
    return decision;
  }

  /** A supply that could not be recorded would bring an address back into use at the next start, but for its offer. */
  #outOfSupply(ended: readonly Offer[]): readonly string[] {
    if (ended.length === 0) return [];
    const recorded = this.#deps.journal.load().supply?.enis.flatMap(({ addresses }) => addresses) ?? [];
    const assigned = new Map(recorded.filter(({ state }) => state === 'assigned').map((one) => [one.ip, one]));
    return ended.filter(({ ip, assignmentId }) => assigned.get(ip)?.assignmentId !== assignmentId).map(({ ip }) => ip);
  }

  #decide(seen: SeenNec, mayOffer: boolean): Publication {
    const { pool, journal, clock, life, warm, outside, readyResources, isQuickRelease, releaseEveryMs } = this.#deps;
    const targets = warm();
    const offers = new Map((journal.load().offers ?? []).map((offer): [string, Offer] => [offer.ip, offer]));
    return decidePublication({
      ...{ offers, life, mayOffer },
      pool: pool.state,
      nec: seen,
      warm: targets,
      outside: outside(),
      pacing: {
        nowMs: clock.bootMs(),
        lastMs: this.#lastPacedMs,
        isQuick: isQuickRelease || targets.isQuickRelease === true,
        everyMs: releaseEveryMs,
      },
      readyResources: readyResources(seen),
    });
  }

  #logWrite({ desired }: AgentSpec, restored: readonly Offer[]): void {
    this.#deps.log.info('offers taken back', { ips: restored.map(({ ip }) => ip), desired });
  }
}
