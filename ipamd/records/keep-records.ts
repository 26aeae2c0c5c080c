import { VPC_IP_KIND, vpcIpName } from '../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import type { KubeClient, ObjectRef } from '../../kube/kube-client.ts';
import { isKubeError, type KubeErrorCode } from '../../kube/kube-error.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NecEntry } from '../nec-cache.ts';
import { decideRecords, type RecordWrite } from './decide-records.ts';
import { PODS_BY_NODE, type PodFacts } from './pod-facts.ts';
import { type ClaimFacts, RECORDS_BY_NODE, type VipFacts } from './record-facts.ts';
import { renderClaim, renderPatch, renderVip } from './render-record.ts';
import { SentWrites } from './sent-writes.ts';

/** A cache of objects, as an informer is one. */
export type Lookup<T> = {
  get(key: string): T | undefined;
  values(): Iterable<T>;
  byIndex(name: string, value: string): readonly T[];
};

/** How a write ended: `behind` is one that a newer state of the object forestalled. */
export type RecordResult = 'written' | 'behind' | 'failed';

/** What records are kept with. */
export type RecordsDeps = {
  readonly kube: Pick<KubeClient, 'create' | 'patch' | 'delete'>;
  readonly pods: Lookup<PodFacts>;
  readonly vips: Lookup<VipFacts>;
  readonly claims: Lookup<ClaimFacts>;
  readonly necs: { get(name: string): NecEntry | undefined };
  /** Waits until one more write may be made: records have a share of the calls of their own, and no more. */
  readonly turn: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observe?: { onWrite(kind: RecordWrite['kind'], result: RecordResult): void };
};

/** When a node's records are to be looked at again; the controllers' own type has the same shape. */
export type RecordsResult = { readonly kind: 'done' } | { readonly kind: 'again'; readonly afterMs: number };

/** The garbage collector takes seconds; what is left after this it will not take (its Pod is over, not gone). */
const LINGER_MS = 60_000;
/** For the caches to hear of what forestalled a write. */
const BEHIND_MS = 2_000;
const FORESTALLED: readonly KubeErrorCode[] = ['CONFLICT', 'ALREADY_EXISTS', 'NOT_FOUND'];
const IN_TROUBLE: readonly KubeErrorCode[] = ['UNAVAILABLE', 'TIMEOUT', 'THROTTLED', 'UNAUTHORIZED'];
const DONE: RecordsResult = { kind: 'done' };
const VIPS = resourceTypeOf(VPC_IP_KIND);
const CLAIMS = resourceTypeOf(VPC_IP_CLAIM_KIND);

/** Keeps the records of Pods, one node at a time. Call it only when every cache is synced: it takes absence for an end. */
export class RecordKeeper {
  #deps: RecordsDeps;
  #sent: SentWrites;
  /** Since when claims have been without their Pod; by node, then by key. */
  #waiting = new Map<string, ReadonlyMap<string, number>>();

  constructor(deps: RecordsDeps) {
    this.#deps = deps;
    this.#sent = new SentWrites(deps.clock);
  }

  /** Nodes that have Pods or records: all that a start must look at. */
  nodes(): ReadonlySet<string> {
    const { pods, vips, claims } = this.#deps;
    const names = new Set<string>();
    for (const { nodeName } of pods.values()) if (nodeName !== '') names.add(nodeName);
    for (const vip of vips.values()) if (vip.isRecord) names.add(vip.nodeName);
    for (const claim of claims.values()) if (claim.isRecord) names.add(claim.nodeName);
    return names;
  }

  /**
   * Brings a node's records in line with its Pods. Idempotent. One object's failure holds up no other's.
   * @throws KubeError the first that asks for a back-off
   */
  async reconcile(nodeName: string, signal: AbortSignal): Promise<RecordsResult> {
    const { clock, pods, vips, claims, necs } = this.#deps;
    const nowMs = clock.monotonicMs();
    const { writes, waiting } = decideRecords({
      pods: pods.byIndex(PODS_BY_NODE, nodeName),
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

  /** Returns whether a cache is behind, so that the node must be looked at again. */
  async #writeAll(writes: readonly RecordWrite[], signal: AbortSignal): Promise<boolean> {
    const failures: unknown[] = [];
    let isBehind = false;
    for (const write of writes) {
      const target = targetOf(write);
      const seen = this.#seen(write);
      if (this.#sent.isAwaited(target, seen)) {
        isBehind = true;
        continue;
      }
      await this.#deps.turn(signal);
      try {
        await this.#write(write, signal);
        this.#sent.note(target, seen);
        this.#deps.observe?.onWrite(write.kind, 'written');
      } catch (error) {
        signal.throwIfAborted();
        if (!isKubeError(error)) throw error;
        if (FORESTALLED.includes(error.code)) {
          isBehind = true;
          this.#deps.observe?.onWrite(write.kind, 'behind');
          continue;
        }
        this.#deps.observe?.onWrite(write.kind, 'failed');
        this.#deps.log.warn('record not written', { write: write.kind, object: target, error: error.message });
        failures.push(error);
        // The server itself is in trouble: the rest would fail alike.
        if (IN_TROUBLE.includes(error.code)) break;
      }
    }
    if (failures.length > 0) throw failures[0];
    return isBehind;
  }

  #seen(write: RecordWrite): string | undefined {
    const { vips, claims } = this.#deps;
    const { name, namespace } = refOf(write);
    const found = namespace === undefined ? vips.get(name) : claims.get(`${namespace}/${name}`);
    return found?.resourceVersion;
  }

  async #write(write: RecordWrite, signal: AbortSignal): Promise<void> {
    const { kube } = this.#deps;
    const ref = refOf(write);
    switch (write.kind) {
      case 'create-claim':
        await kube.create(CLAIMS, renderClaim(write.record), signal);
        return;
      case 'create-vip':
        await kube.create(VIPS, renderVip(write.record, write.ip), signal);
        return;
      case 'update-claim': {
        const body = renderPatch(renderClaim(write.record), write.claim.resourceVersion);
        await kube.patch(CLAIMS, ref, { kind: 'merge', body }, signal);
        return;
      }
      case 'update-vip': {
        const body = renderPatch(renderVip(write.record, write.ip), write.vip.resourceVersion);
        await kube.patch(VIPS, ref, { kind: 'merge', body }, signal);
        return;
      }
      case 'delete-claim':
        await kube.delete(CLAIMS, ref, guardOf(write.claim), signal);
        return;
      case 'delete-vip':
        await kube.delete(VIPS, ref, guardOf(write.vip), signal);
        return;
    }
  }
}

function guardOf({ uid, resourceVersion }: VipFacts | ClaimFacts) {
  return { uid, resourceVersion };
}

/** The object of a write; the name is that of the cache's key too. */
function refOf(write: RecordWrite): ObjectRef {
  switch (write.kind) {
    case 'create-claim':
      return { namespace: write.record.pod.namespace, name: write.record.pod.name };
    case 'update-claim':
    case 'delete-claim': {
      const [namespace = '', name = ''] = write.claim.key.split('/');
      return { namespace, name };
    }
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
