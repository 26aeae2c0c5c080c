import type { Cloud, IpUser } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { API_VERSION } from '../../crd/names.ts';
import type { StaticIpConfig } from '../../crd/static-ip-config.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NecEntry } from '../nec-cache.ts';
import type { NodeEvents } from '../node/node-deps.ts';
import { type PodFacts, podKeyOf, wishesOf } from '../records/pod-facts.ts';
import type { ClaimFacts, Kept, VipFacts } from '../records/record-facts.ts';
import { type ClaimDifference, findDifferences, findUnreadable } from './find-differences.ts';
import { findClaimKeys } from './find-places.ts';
import type { TakenBook } from './taken-book.ts';
import { involvedClaim } from './write-claim.ts';

/** Dependencies of the audit of static addresses. */
export type ClaimAuditDeps = {
  readonly cloud: Pick<Cloud, 'subnets'>;
  readonly pods: Informer<PodFacts>;
  readonly necs: Informer<NecEntry>;
  readonly vips: Informer<VipFacts>;
  readonly claims: Informer<ClaimFacts>;
  readonly configs: Informer<Kept<StaticIpConfig>>;
  readonly taken: TakenBook;
  /** Enqueues a claim. */
  readonly wake: (key: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: NodeEvents;
  readonly intervalMs: number;
  readonly observe?: ClaimAuditObserver;
};

/** Callbacks for audits; the metrics use them. */
export type ClaimAuditObserver = {
  /** `unasked`: the cloud did not answer, and its view is unknown. */
  onClaimAudit?(outcome: 'done' | 'unasked', differences: readonly ClaimDifference[], taken: number): void;
};

const IPS_PER_CALL = 100;
const TIMEOUT_MS = 30_000;

/**
 * Compares claims, VpcIPs, Pods, nodes and the cloud periodically until aborted. A claim that differs is reconciled,
 * which repairs it and releases nothing without a check; a difference that persists the next time is reported. An
 * address on no ENI that another resource has, according to the cloud, is not requested until it is free. Rejects only
 * with a fault of ipamd.
 */
export async function runClaimAudit(deps: ClaimAuditDeps, signal: AbortSignal): Promise<void> {
  const before = new Set<string>();
  while (!signal.aborted) {
    await deps.clock.sleep(deps.intervalMs, signal).catch(() => {});
    if (signal.aborted) return;
    const found = lookAt(deps);
    const isAsked = await askCloud(deps, signal).catch((error: unknown) => {
      if (signal.aborted || !isCloudError(error)) return false;
      deps.log.warn('kept addresses could not be looked up in the cloud, will try again', { error });
      return false;
    });
    deps.observe?.onClaimAudit?.(isAsked ? 'done' : 'unasked', found, deps.taken.size);
    for (const one of found) {
      // An unreadable object does not repair itself: it is reported once at the first audit, other differences when
      // they persist.
      if (before.has(identityOf(one)) === (one.object === undefined)) tell(deps, one);
      if (one.key !== '') deps.wake(one.key);
    }
    before.clear();
    for (const one of found) before.add(identityOf(one));
  }
}

function lookAt({ pods, necs, vips, claims, configs }: ClaimAuditDeps): readonly ClaimDifference[] {
  // A cache without its first list proves nothing.
  if (![pods, necs, vips, claims].every(({ isSynced }) => isSynced)) return [];
  const unreadable = findUnreadable({ vips: vips.values(), configs: entriesOf(configs) });
  const differing = findDifferences({
    pods: [...pods.values()].filter((pod) => pod.lasting !== undefined && wishesOf(pod).wishes.isStatic).map(podKeyOf),
    claims: [...claims.values()]
      .filter(({ isRecord }) => !isRecord)
      .map(({ key, kept }) => ({
        key,
        vpcIps: kept?.decoded?.status?.vpcIPs ?? [],
        isEnding: kept?.decoded?.metadata.deletionTimestamp !== undefined,
      })),
    vips: [...vips.values()].flatMap(({ name, isRecord, podKey, kept }) =>
      isRecord || podKey === ''
        ? []
        : [{ name, key: podKey, nodeName: kept?.decoded?.spec.nodeName, eniId: kept?.decoded?.status?.eniID }],
    ),
    marks: [...necs.values()].flatMap(({ name, decoded }) =>
      findClaimKeys(decoded?.status).map((key) => ({ key, nodeName: name })),
    ),
    enisOf: (nodeName) => {
      const entry = necs.get(nodeName);
      return entry === undefined
        ? undefined
        : new Set((entry.decoded?.status?.eniInfos ?? []).map(({ eniID }) => eniID));
    },
  });
  return [...differing, ...unreadable];
}

function* entriesOf<T>(informer: Pick<Informer<T>, 'keys' | 'get'>): Iterable<readonly [string, T]> {
  for (const key of informer.keys()) {
    const value = informer.get(key);
    if (value !== undefined) yield [key, value];
  }
}

/** Checks in the cloud every address that is on no ENI; returns whether the cloud answered. */
async function askCloud({ cloud, necs, vips, taken, wake }: ClaimAuditDeps, signal: AbortSignal): Promise<boolean> {
  const vpcId = [...necs.values()].map(({ decoded }) => decoded?.status?.vpcID).find((id) => id !== undefined);
  const kept = [...vips.values()].filter(isOnNone);
  if (vpcId === undefined) return kept.length === 0;
  for (let index = 0; index < kept.length; index += IPS_PER_CALL) {
    const batch = kept.slice(index, index + IPS_PER_CALL);
    const context = { priority: 'gc', owner: 'claims', signal, timeoutMs: TIMEOUT_MS } as const;
    const ips = batch.map(({ ip }) => ip);
    const users = await cloud.subnets.usersOf(vpcId, ips, context);
    for (const vip of batch) {
      const user = users.find(({ ip }) => ip === vip.ip);
      const now = vips.get(vip.name);
      // The claim got its address while the cloud was asked: the address is the claim's own.
      if (user === undefined || now === undefined || now.resourceVersion !== vip.resourceVersion) continue;
      taken.refuse(vip.podKey, [vip.ip], 'found by the audit', wordsOf(user));
      wake(vip.podKey);
    }
  }
  return true;
}

function isOnNone({ isRecord, kept }: VipFacts): boolean {
  const phase = kept?.decoded?.status?.phase;
  return !isRecord && (phase === 'Kept' || phase === 'Failed');
}

function wordsOf({ ip, resourceType, resourceId }: IpUser): string {
  return `${ip} is of ${resourceType} ${resourceId}`.trim();
}

function identityOf({ kind, key, object, message }: ClaimDifference): string {
  return `${kind} ${key} ${object?.namespace ?? ''}/${object?.name ?? ''} ${message}`;
}

function tell({ claims, events, log }: ClaimAuditDeps, { kind, key, object, message }: ClaimDifference): void {
  log.warn('a kept address is not as it should be', { claim: key, kind, detail: message, ...object });
  const involved =
    object === undefined ? involvedClaim(key, claims.get(key)?.uid) : { apiVersion: API_VERSION, ...object };
  events.record({
    involved,
    type: 'Warning',
    reason: object === undefined ? 'ClaimDiffers' : 'ObjectInvalid',
    message,
  });
}
