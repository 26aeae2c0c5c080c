import { isCloudError } from '../../../cloud/cloud-error.ts';
import { API_VERSION } from '../../../crd/names.ts';
import type { Informer } from '../../../kube/informer.ts';
import { countsOf } from '../../../runtime/metrics/metric-table.ts';
import { networkRequestOf, podKeyOf } from '../../cache/pod-facts.ts';
import type { VipFacts } from '../../cache/record-facts.ts';
import { readClaimKeys } from '../../decide/mark-indexes.ts';
import { noteConflict, userText } from './address-conflicts.ts';
import type { ClaimsTerm } from './claims-term.ts';
import { type ClaimDifference, compareClaims, listUnreadable } from './compare-claims.ts';
import { involvedClaim } from './write-claim.ts';

const IPS_PER_CALL = 100;
const TIMEOUT_MS = 30_000;

/**
 * Compares claims, VpcIPs, Pods, nodes and the cloud periodically until aborted. A claim that differs is reconciled,
 * which repairs it and releases nothing without a check; a difference that persists the next time is reported. An
 * address on no ENI that another resource has, according to the cloud, is not requested until it is free. Rejects only
 * with a fault of ipamd.
 */
export async function runClaimAudit(deps: ClaimsTerm, signal: AbortSignal): Promise<void> {
  const before = new Set<string>();
  while (!signal.aborted) {
    await deps.clock.sleep(deps.config.claimAuditIntervalMs, signal).catch(() => {});
    if (signal.aborted) return;
    const found = compareCaches(deps);
    const isAnswered = await checkCloud(deps, signal).catch((error: unknown) => {
      if (signal.aborted || !isCloudError(error)) return false;
      deps.log.warn('static addresses could not be checked in the cloud, will try again', { error });
      return false;
    });
    deps.metrics.claimAudits.inc({ outcome: isAnswered ? 'done' : 'unasked' });
    const kinds = countsOf(found.map((one) => one.kind));
    deps.metrics.claimDifferences.replace([...kinds].map(([kind, count]) => [{ kind }, count]));
    for (const one of found) {
      // An unreadable object does not repair itself: it is reported once at the first audit, other differences when
      // they persist.
      if (before.has(identityOf(one)) === (one.object === undefined)) report(deps, one);
      if (one.key !== '') deps.queues.claims.add(one.key);
    }
    before.clear();
    for (const one of found) before.add(identityOf(one));
  }
}

function compareCaches({ pods, necs, vips, claims, configs }: ClaimsTerm): readonly ClaimDifference[] {
  // A cache without its first list proves nothing.
  if (![pods, necs, vips, claims].every(({ isSynced }) => isSynced)) return [];
  const unreadable = listUnreadable({ vips: vips.values(), configs: entriesOf(configs) });
  const differing = compareClaims({
    pods: [...pods.values()]
      .filter((pod) => pod.claimInfo !== undefined && networkRequestOf(pod).request.isStatic)
      .map(podKeyOf),
    claims: [...claims.values()]
      .filter(({ isRecord }) => !isRecord)
      .map(({ key, staticObject }) => ({
        key,
        vpcIps: staticObject?.decoded?.status?.vpcIPs ?? [],
        isEnding: staticObject?.decoded?.metadata.deletionTimestamp !== undefined,
      })),
    vips: [...vips.values()].flatMap(({ name, isRecord, podKey, staticObject }) =>
      isRecord || podKey === ''
        ? []
        : [
            {
              name,
              key: podKey,
              nodeName: staticObject?.decoded?.spec.nodeName,
              eniId: staticObject?.decoded?.status?.eniID,
            },
          ],
    ),
    marks: [...necs.values()].flatMap(({ name, decoded }) =>
      readClaimKeys(decoded?.status).map((key) => ({ key, nodeName: name })),
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
async function checkCloud(deps: ClaimsTerm, signal: AbortSignal): Promise<boolean> {
  const { cloud, necs, vips, claims } = deps;
  const vpcId = [...necs.values()].map(({ decoded }) => decoded?.status?.vpcID).find((id) => id !== undefined);
  const unassigned = [...vips.values()].filter((vip) => isUnassigned(vip) && !isReserved(vip, claims));
  if (vpcId === undefined) return unassigned.length === 0;
  for (let index = 0; index < unassigned.length; index += IPS_PER_CALL) {
    const batch = unassigned.slice(index, index + IPS_PER_CALL);
    const context = { priority: 'gc', owner: 'claims', signal, timeoutMs: TIMEOUT_MS } as const;
    const ips = batch.map(({ ip }) => ip);
    const users = await cloud.subnets.usersOf(vpcId, ips, context);
    for (const vip of batch) {
      const user = users.find(({ ip }) => ip === vip.ip);
      const now = vips.get(vip.name);
      // The claim got its address while the cloud was asked: the address is the claim's own.
      if (user === undefined || now === undefined || now.resourceVersion !== vip.resourceVersion) continue;
      noteConflict(deps, vip.podKey, [vip.ip], 'found by the audit', userText(user));
    }
  }
  return true;
}

function isUnassigned({ isRecord, staticObject }: VipFacts): boolean {
  const phase = staticObject?.decoded?.status?.phase;
  return !isRecord && (phase === 'Kept' || phase === 'Failed');
}

/** Reports whether the VPC has the address reserved for its claim: the cloud then names a user of it. */
function isReserved({ ip, podKey }: VipFacts, claims: ClaimsTerm['claims']): boolean {
  const { state, ip: reservedIp } = claims.get(podKey)?.staticObject?.decoded?.status?.reservation ?? {};
  return state === 'Reserved' && reservedIp === ip;
}

function identityOf({ kind, key, object, message }: ClaimDifference): string {
  return `${kind} ${key} ${object?.namespace ?? ''}/${object?.name ?? ''} ${message}`;
}

function report({ claims, events, log }: ClaimsTerm, { kind, key, object, message }: ClaimDifference): void {
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
