import { vpcIpName } from '../../crd/vpc-ip.ts';
import type { VpcIpClaim } from '../../crd/vpc-ip-claim.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Fault } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { IPAMD_EVENTS, type IpamdEventReason } from '../event-reasons.ts';
import type { NodeEvents } from '../node/node-deps.ts';
import type { ClaimFacts, Kept, VipFacts } from '../records/record-facts.ts';
import type { ClaimBook } from './claim-book.ts';
import type { ClaimView } from './claim-view.ts';
import { decideClaim } from './decide-claim.ts';
import type { ClaimDecision, ClaimReason } from './decision.ts';
import { findReservedIps } from './find-reserved.ts';
import { renderInvalid } from './render-claim.ts';
import type { ClaimEyes } from './see-claim.ts';
import type { TakenBook } from './taken-book.ts';
import { CLAIMS, type ClaimWriteKind, deleteRecord, involvedClaim, refOf, writeDecision } from './write-claim.ts';

/** Dependencies of the claim reconciler. */
export type ClaimKeeperDeps = {
  readonly kube: KubeClient;
  readonly claims: Pick<Informer<ClaimFacts>, 'get'>;
  readonly vips: Pick<Informer<VipFacts>, 'get'>;
  readonly eyes: ClaimEyes;
  readonly book: ClaimBook;
  readonly taken: TakenBook;
  /** Enqueues a node: its requests have changed. */
  readonly wakeNode: (name: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: NodeEvents;
  readonly observe?: ClaimsObserver;
};

/** Callbacks for claims; the metrics use them. */
export type ClaimsObserver = {
  onWrite?(kind: ClaimWriteKind): void;
  /** State of a claim; undefined when it is deleted. */
  onClaim?(key: string, reason: ClaimReason | undefined): void;
};

/** When a claim is to be reconciled again; the same shape as the controllers' own type. */
type ClaimResult = { readonly kind: 'done' } | { readonly kind: 'again'; readonly afterMs: number };

/** Time for the caches to receive what conflicted with a write. */
const BEHIND_MS = 500;
const DONE: ClaimResult = { kind: 'done' };

/** Reconciles claims, one at a time. Use it only when every cache is synced: it treats a missing object as deleted. */
export class ClaimKeeper {
  readonly #deps: ClaimKeeperDeps;
  /** Faults of claims that were reported. */
  readonly #told = new Map<string, string>();
  /** Notices that were reported on Pods, by claim. */
  readonly #toldNews = new Map<string, string>();

  constructor(deps: ClaimKeeperDeps) {
    this.#deps = deps;
  }

  /**
   * Brings one claim, its VpcIPs and the requests for nodes in line with its Pod. Idempotent.
   * @throws KubeError when a write failed for another reason than a cache that is behind
   */
  async reconcile(key: string, signal: AbortSignal): Promise<ClaimResult> {
    const { claims, eyes, book, taken } = this.#deps;
    const facts = claims.get(key);
    if (facts?.isRecord === true && !(await this.#outlivesRecord(key, facts, signal))) return DONE;
    const { decoded, faults } = keptOf(facts);
    if (faults.length > 0) return await this.#tellFaults(key, facts, faults, signal);
    this.#told.delete(key);
    await taken.look(key, signal);
    const view = eyes.viewOf(key, decoded, taken.of(key));
    const decision = decideClaim(view);
    try {
      await this.#makeWay(view, decision, signal);
      await writeDecision({ kube: this.#deps.kube, ...this.#counting() }, view, decision, signal);
    } catch (error) {
      if (!isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS', 'NOT_FOUND')) throw error;
      return { kind: 'again', afterMs: BEHIND_MS };
    }
    this.#tell(view, decision);
    if (isOver(view, decision)) taken.forget(key);
    if (decision.claim?.kind === 'finish') this.#toldNews.delete(key);
    for (const node of book.set(key, decision.wishes, findReservedIps(view, decision))) this.#deps.wakeNode(node);
    // If this pass came a little too early it would be the last one, and the claim would never show why it waits.
    const dueMs = [decision.againMs, eyes.waitDueInMs(key)].filter((ms) => ms !== undefined);
    return dueMs.length === 0 ? DONE : { kind: 'again', afterMs: Math.max(1, Math.min(...dueMs)) };
  }

  #counting() {
    const { observe } = this.#deps;
    return { onWrite: (kind: ClaimWriteKind) => observe?.onWrite?.(kind) };
  }

  /**
   * Handles a record of a Pod of that name without a static address; it is deleted when a Pod with a static address
   * exists. Returns whether to go on.
   */
  async #outlivesRecord(key: string, facts: ClaimFacts, signal: AbortSignal): Promise<boolean> {
    if (this.#deps.eyes.podOf(key) === undefined) {
      // Marks without a claim are still to be removed; the record itself belongs to the records controller.
      for (const node of this.#deps.book.set(key, new Map(), [])) this.#deps.wakeNode(node);
      return false;
    }
    const { uid, resourceVersion } = facts;
    await this.#deps.kube.delete(CLAIMS, refOf(key), { uid, resourceVersion }, signal).catch((error: unknown) => {
      if (!isKubeError(error, 'CONFLICT', 'NOT_FOUND')) throw error;
    });
    return false;
  }

  /** Deletes the record of a deleted Pod that has the name of a VpcIP that is to be created. */
  async #makeWay(view: ClaimView, { vips }: ClaimDecision, signal: AbortSignal): Promise<void> {
    for (const write of vips) {
      if (write.kind !== 'put' || write.vip !== undefined) continue;
      const there = this.#deps.vips.get(vpcIpName(write.wanted.ip));
      if (there?.isRecord !== true || view.holderOf(write.wanted.ip) !== undefined) continue;
      await deleteRecord(this.#deps.kube, there, write.wanted.ip, signal);
    }
  }

  /** Reports a malformed claim; the claim and everything that depends on it stay unchanged. */
  async #tellFaults(
    key: string,
    facts: ClaimFacts | undefined,
    faults: readonly Fault[],
    signal: AbortSignal,
  ): Promise<ClaimResult> {
    const said = faults.map(({ path, expected, got }) => `${path}: expected ${expected}, got ${got}`).join('; ');
    if (this.#told.get(key) === said) return DONE;
    this.#told.set(key, said);
    this.#deps.log.warn('a claim cannot be read, nothing is done to it', { claim: key, faults: said });
    this.#record(key, facts?.uid, 'ClaimInvalid', said);
    this.#deps.observe?.onClaim?.(key, 'ClaimInvalid');
    const body = renderInvalid(said, facts?.resourceVersion, new Date(this.#deps.clock.nowMs()).toISOString());
    await this.#deps.kube.patch(CLAIMS, refOf(key), { kind: 'merge', body }, signal).catch((error: unknown) => {
      // The API server refuses every write of an object that its schema does not accept; then only the event reports
      // it.
      if (!isKubeError(error)) throw error;
    });
    return DONE;
  }

  #tell(view: ClaimView, { claim, news }: ClaimDecision): void {
    const { observe } = this.#deps;
    const uid = view.claim?.metadata.uid;
    const before = view.claim?.status?.conditions?.find(({ type }) => type === 'Ready');
    if (claim?.kind === 'create' || claim?.kind === 'put') {
      const { reason, status } = claim.wanted;
      observe?.onClaim?.(view.key, reason);
      const event = eventOf(reason);
      if (event !== undefined && before?.reason !== reason) this.#about(view, event, status.message ?? '');
      this.#tellNews(view, news);
    } else if (claim?.kind === 'delete') {
      this.#record(view.key, uid, 'ClaimEnded', `the address is given back: ${claim.why}`);
    } else if (claim?.kind === 'finish' || view.claim === undefined) {
      observe?.onClaim?.(view.key, undefined);
    }
  }

  /** Reports what differs from the last report, of this Pod or the former one. */
  #tellNews(view: ClaimView, news: ClaimDecision['news']): void {
    const { key, pod } = view;
    const said = news.length === 0 ? '' : JSON.stringify([pod?.uid, news]);
    if ((this.#toldNews.get(key) ?? '') === said) return;
    if (said === '') this.#toldNews.delete(key);
    else this.#toldNews.set(key, said);
    for (const { reason, message } of news) this.#about(view, reason, message);
  }

  /** Records an event on the Pod that waits for the claim, if there is one: that is where people look. */
  #about(view: ClaimView, reason: IpamdEventReason, message: string): void {
    const { pod, key, claim } = view;
    if (pod === undefined || reason === 'ClaimInUse') {
      this.#record(key, claim?.metadata.uid, reason, message);
      return;
    }
    const involved = { apiVersion: 'v1', kind: 'Pod', ...refOf(key), uid: pod.uid };
    this.#deps.events.record({ involved, type: IPAMD_EVENTS[reason].type, reason, message });
  }

  #record(key: string, uid: string | undefined, reason: IpamdEventReason, message: string): void {
    const involved = involvedClaim(key, uid);
    this.#deps.events.record({ involved, type: IPAMD_EVENTS[reason].type, reason, message });
  }
}

function keptOf(facts: ClaimFacts | undefined): Kept<VpcIpClaim> {
  return facts?.kept ?? { decoded: undefined, faults: [] };
}

/** Tells whether a conflict does not matter any more: the claim has its address, or is deleted. */
function isOver({ places, claim }: ClaimView, decision: ClaimDecision): boolean {
  const isGone = claim === undefined && decision.claim === undefined;
  return isGone || decision.claim?.kind === 'finish' || places.some(({ isReleasing }) => !isReleasing);
}

function eventOf(reason: ClaimReason): IpamdEventReason | undefined {
  return (EVENTS as Readonly<Partial<Record<ClaimReason, IpamdEventReason>>>)[reason];
}

const EVENTS = {
  AddressTaken: 'AddressTaken',
  AddressElsewhere: 'AddressElsewhere',
  AddressPoolExhausted: 'AddressPoolExhausted',
  StaticIPDisabled: 'StaticIPDisabled',
  ClaimInUse: 'ClaimInUse',
} as const satisfies Readonly<Partial<Record<ClaimReason, IpamdEventReason>>>;
