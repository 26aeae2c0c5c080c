import { vpcIpName } from '../../../crd/vpc-ip.ts';
import type { ReconcileResult } from '../../../kube/controller.ts';
import { FreshStore } from '../../../kube/fresh-store.ts';
import { guardsOf } from '../../../kube/guarded-update.ts';
import type { Informer } from '../../../kube/informer.ts';
import type { KubeObject, ObjectRef } from '../../../kube/kube-client.ts';
import { isKubeError, type KubeErrorCode } from '../../../kube/kube-error.ts';
import { VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import { PODS_BY_NODE, refOfKey } from '../../cache/pod-facts.ts';
import { type ClaimFacts, decodeClaim, decodeVip, RECORDS_BY_NODE, type VipFacts } from '../../cache/record-facts.ts';
import type { Term } from '../../calls/term.ts';
import { decideRecords, type RecordWrite } from './decide-records.ts';
import { renderClaim, renderPatch, renderVip } from './render-record.ts';

/** What the records of Pods are kept with. */
export type RecordsTerm = Pick<Term, 'kube' | 'pods' | 'necs' | 'clock' | 'log' | 'metrics'> & {
  readonly vips: Informer<VipFacts>;
  readonly claims: Informer<ClaimFacts>;
  /** Whether a Pod has a claim besides the records of its addresses. */
  readonly hasClaims: boolean;
};

/**
 * The garbage collector takes seconds; it will not delete claims that are left after this (their Pod is finished, not
 * deleted).
 */
const LINGER_MS = 60_000;
/** Time for the caches to receive what conflicted with a write. */
const BEHIND_MS = 2_000;
const RACE_CODES: readonly KubeErrorCode[] = ['CONFLICT', 'ALREADY_EXISTS', 'NOT_FOUND'];
const SERVER_FAULT_CODES: readonly KubeErrorCode[] = ['UNAVAILABLE', 'TIMEOUT', 'THROTTLED', 'UNAUTHORIZED'];
const DONE: ReconcileResult = { kind: 'done' };

/**
 * Reconciles the records of Pods, one node at a time. Use it only when every cache is synced: it treats a missing
 * object as deleted.
 */
export class RecordsReconciler {
  readonly #term: RecordsTerm;
  readonly #acquireWrite: (signal: AbortSignal) => Promise<void>;
  readonly #vips: FreshStore<VipFacts>;
  readonly #claims: FreshStore<ClaimFacts>;
  /** Since when claims have been without their Pod; by node, then by key. */
  readonly #waiting = new Map<string, ReadonlyMap<string, number>>();

  /** `acquireWrite` waits until one more write may be made: records have a limited share of the calls. */
  constructor(term: RecordsTerm, acquireWrite: (signal: AbortSignal) => Promise<void>) {
    this.#term = term;
    this.#acquireWrite = acquireWrite;
    this.#vips = new FreshStore(term.vips, ({ resourceVersion }) => resourceVersion);
    this.#claims = new FreshStore(term.claims, ({ resourceVersion }) => resourceVersion);
  }

  /** Returns the nodes that have Pods or records: those that have to be reconciled at the start. */
  nodes(): ReadonlySet<string> {
    const { pods, vips, claims } = this.#term;
    const names = new Set<string>();
    for (const { nodeName } of pods.values()) if (nodeName !== '') names.add(nodeName);
    for (const vip of vips.values()) if (vip.isRecord) names.add(vip.nodeName);
    for (const claim of claims.values()) if (claim.isRecord) names.add(claim.nodeName);
    return names;
  }

  /**
   * Brings a node's records in line with its Pods. Idempotent. A failed write does not stop those of other objects.
   * @throws KubeError the first that requires a backoff
   */
  async reconcile(nodeName: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, pods, vips, claims, necs, hasClaims } = this.#term;
    const nowMs = clock.monotonicMs();
    const { writes, waiting } = decideRecords({
      pods: pods.byIndex(PODS_BY_NODE, nodeName),
      hasClaims,
      status: necs.get(nodeName)?.decoded?.status,
      vips: vips.byIndex(RECORDS_BY_NODE, nodeName),
      claims: claims.byIndex(RECORDS_BY_NODE, nodeName),
      podOf: (key) => pods.get(key),
      vipOf: (name) => vips.get(name),
      claimOf: (key) => claims.get(key),
      lingering: this.#lingering(nodeName, nowMs),
    });
    this.#noteWaiting(nodeName, waiting, nowMs);
    const isBehind = await this.#writeAll(writes, signal);
    if (isBehind) return { kind: 'again', afterMs: BEHIND_MS };
    return waiting.length > 0 ? { kind: 'again', afterMs: LINGER_MS } : DONE;
  }

  #lingering(nodeName: string, nowMs: number): ReadonlySet<string> {
    const since = this.#waiting.get(nodeName) ?? new Map<string, number>();
    return new Set([...since].filter(([, sinceMs]) => nowMs - sinceMs >= LINGER_MS).map(([key]) => key));
  }

  #noteWaiting(nodeName: string, waiting: readonly string[], nowMs: number): void {
    const known = this.#waiting.get(nodeName);
    if (waiting.length === 0) this.#waiting.delete(nodeName);
    else this.#waiting.set(nodeName, new Map(waiting.map((key) => [key, known?.get(key) ?? nowMs])));
  }

  /** Makes the writes; returns whether a cache is behind, so that the node must be reconciled again. */
  async #writeAll(writes: readonly RecordWrite[], signal: AbortSignal): Promise<boolean> {
    const failures: unknown[] = [];
    let isBehind = false;
    for (const write of writes) {
      // It would write the same again, and the server would refuse it at the cost of a call.
      if (this.#isAwaited(refOf(write))) {
        isBehind = true;
        continue;
      }
      await this.#acquireWrite(signal);
      try {
        await this.#write(write, signal);
        this.#term.metrics.recordWrites.inc({ kind: write.kind, result: 'written' });
      } catch (error) {
        signal.throwIfAborted();
        if (!isKubeError(error)) throw error;
        if (RACE_CODES.includes(error.code)) {
          isBehind = true;
          // The object had a newer state than the cache.
          this.#term.metrics.recordWrites.inc({ kind: write.kind, result: 'behind' });
          continue;
        }
        this.#term.metrics.recordWrites.inc({ kind: write.kind, result: 'failed' });
        this.#term.log.warn('record not written', { write: write.kind, object: targetOf(write), error: error.message });
        failures.push(error);
        // The server itself has a problem: the other writes would fail too.
        if (SERVER_FAULT_CODES.includes(error.code)) break;
      }
    }
    if (failures.length > 0) throw failures[0];
    return isBehind;
  }

  /** Reports whether the cache has not received a write of an object yet. */
  #isAwaited({ namespace, name }: ObjectRef): boolean {
    return namespace === undefined ? this.#vips.isBehind(name) : this.#claims.isBehind(`${namespace}/${name}`);
  }

  #noteClaim(object: KubeObject): void {
    const claim = decodeClaim(object);
    this.#claims.note(claim.key, claim);
  }

  #noteVip(object: KubeObject): void {
    const vip = decodeVip(object);
    this.#vips.note(vip.name, vip);
  }

  async #write(write: RecordWrite, signal: AbortSignal): Promise<void> {
    const { kube } = this.#term;
    const ref = refOf(write);
    switch (write.kind) {
      case 'create-claim':
        this.#noteClaim(await kube.create(VPC_IP_CLAIMS, renderClaim(write.record), signal));
        return;
      case 'create-vip':
        this.#noteVip(await kube.create(VPC_IPS, renderVip(write.record, write.ip), signal));
        return;
      case 'update-claim': {
        const body = renderPatch(renderClaim(write.record), write.claim.resourceVersion);
        this.#noteClaim(await kube.patch(VPC_IP_CLAIMS, ref, { kind: 'merge', body }, signal));
        return;
      }
      case 'update-vip': {
        const body = renderPatch(renderVip(write.record, write.ip), write.vip.resourceVersion);
        this.#noteVip(await kube.patch(VPC_IPS, ref, { kind: 'merge', body }, signal));
        return;
      }
      case 'delete-claim':
        await kube.delete(VPC_IP_CLAIMS, ref, guardsOf(write.claim), signal);
        this.#claims.noteDeleted(write.claim.key, write.claim.resourceVersion);
        return;
      case 'delete-vip':
        await kube.delete(VPC_IPS, ref, guardsOf(write.vip), signal);
        this.#vips.noteDeleted(write.vip.name, write.vip.resourceVersion);
        return;
    }
  }
}

/** Returns the reference of a write's object; the cache's key has the same name. */
function refOf(write: RecordWrite): ObjectRef {
  switch (write.kind) {
    case 'create-claim':
      return { namespace: write.record.pod.namespace, name: write.record.pod.name };
    case 'update-claim':
    case 'delete-claim':
      return refOfKey(write.claim.key);
    case 'create-vip':
      return { name: vpcIpName(write.ip.ip) };
    case 'update-vip':
    case 'delete-vip':
      return { name: write.vip.name };
  }
}

function targetOf(write: RecordWrite): string {
  const { namespace, name } = refOf(write);
  return namespace === undefined ? `vip ${name}` : `vipc ${namespace}/${name}`;
}
