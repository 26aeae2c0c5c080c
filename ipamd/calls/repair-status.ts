import type { Eni } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { ENI_TAG } from '../../crd/cloud-tags.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { CloudSnapshot, ObservedEni } from '../decide/decision.ts';
import { driftEniOf, driftKey, evaluateDrift, findProvenEnis } from '../decide/evaluate-drift.ts';
import { isWithCreator } from '../decide/observed-eni.ts';
import { rebuildStatus } from '../decide/rebuild-status.ts';
import { isStaticEniOf } from '../decide/static-eni.ts';
import { withCounts } from '../decide/with-enis.ts';
import type { ObserveRequest } from './cloud-observer.ts';
import { isTakenLately } from './eni-changes.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import { trackDescribe } from './note-refusal.ts';
import type { ReconcileInput } from './read-input.ts';
import { MAX_DESCRIPTION_AGE_MS } from './recent-changes.ts';

/** A status, repaired or not. `afterMs`: when the cloud is to be described again. */
export type RepairResult = {
  readonly status: NodeEniConfigStatus;
  readonly afterMs?: number;
  /** What was repaired, for people. */
  readonly repaired?: string;
  /** Called when the status was written. */
  readonly onWritten?: () => void;
};

/** A difference counts when two descriptions so far apart show it: one description may be old. */
const CONFIRM_MS = 60_000;
/** The cloud is described again after this while ENIs are between two states. */
const MOVING_MS = 2_000;
/** Shortest time between two rebuilds that were written, of a status that becomes unreadable again and again. */
const MIN_REBUILD_INTERVAL_MS = 60_000;

/** More of them fill an event without being useful. */
const MAX_SHOWN = 10;

/**
 * Describes the cloud when that was requested, and repairs the differences that a description a minute ago showed too,
 * or that another source proves.
 * ENIs with a recorded call are left out. So the description waits until the outcome of an ended call is in the object:
 * that call may be the reason for the request.
 * @throws CloudError
 */
export async function repairDrift(
  deps: NodeDeps,
  memory: NodeMemory,
  input: ReconcileInput,
  signal: AbortSignal,
): Promise<RepairResult> {
  const { describe } = memory;
  const { status } = input;
  if (describe === undefined) return { status };
  if ([...memory.calls.values()].some(({ outcome }) => outcome !== undefined)) return { status };
  const nowMs = deps.clock.monotonicMs();
  if (nowMs < describe.notBeforeMs) return { status, afterMs: describe.notBeforeMs - nowMs };
  const snapshot = await observeOrPostpone(deps, memory, input, describe.why, signal);
  if (snapshot === undefined) return { status, afterMs: CONFIRM_MS };
  if (memory.describe === describe) memory.describe = undefined;
  const drifts = evaluateDrift(status, snapshot);
  const keys = new Set(drifts.map(driftKey));
  const busy = new Set((status.intents ?? []).flatMap(({ eniID, targetENIID }) => [eniID, targetENIID]));
  const hidden = [...memory.driftSinceMs.keys()].filter((key) => busy.has(driftEniOf(key)));
  for (const key of memory.driftSinceMs.keys())
    if (!keys.has(key) && !hidden.includes(key)) memory.driftSinceMs.delete(key);
  for (const key of keys) if (!memory.driftSinceMs.has(key)) memory.driftSinceMs.set(key, nowMs);
  const counted = withCounts(status);
  if (drifts.length === 0) {
    const wait = describeAgain(memory, nowMs, [], hidden);
    return { status: counted, ...wait, ...(counted === status ? {} : { repaired: 'counts of ENIs and addresses' }) };
  }
  const reservedIps = input.reservedIps();
  const proven = findProvenEnis(status, snapshot, drifts, { strayIps: memory.strayIps, reservedIps });
  const isYoung = (key: string) =>
    !proven.has(driftEniOf(key)) && nowMs - (memory.driftSinceMs.get(key) ?? nowMs) < CONFIRM_MS;
  const youngKeys = [...keys].filter(isYoung);
  const young = new Set(youngKeys.map(driftEniOf));
  const old = new Set(drifts.map((drift) => drift.eniID).filter((eniID) => !young.has(eniID)));
  for (const { kind } of drifts) deps.metrics.nodeDrift.inc({ kind });
  deps.log.warn('cloud and object of a node differ', {
    node: input.name,
    drifts: [...keys],
    repaired: [...old],
  });
  const wait = describeAgain(memory, nowMs, youngKeys, hidden);
  if (old.size === 0) return { status, ...wait };
  function onWritten(): void {
    for (const key of memory.driftSinceMs.keys()) if (old.has(driftEniOf(key))) memory.driftSinceMs.delete(key);
  }
  const repaired = drifts.filter((drift) => old.has(drift.eniID)).map(driftKey);
  const next = rebuildStatus(status, input.spec, snapshot, deps.ids, old, reservedIps);
  return { status: next, ...wait, onWritten, repaired: repaired.slice(0, MAX_SHOWN).join(', ') };
}

/**
 * Requests the description that confirms differences: when the first of the young ones counts. Differences that a
 * recorded call hides are looked for again after {@link CONFIRM_MS}. Returns how long the node waits for that.
 */
function describeAgain(
  memory: NodeMemory,
  nowMs: number,
  youngKeys: readonly string[],
  hiddenKeys: readonly string[],
): Pick<RepairResult, 'afterMs'> {
  if (youngKeys.length + hiddenKeys.length === 0) return {};
  const sinceMs = [...youngKeys.map((key) => memory.driftSinceMs.get(key) ?? nowMs), nowMs];
  const notBeforeMs = Math.min(...sinceMs) + CONFIRM_MS;
  memory.describe ??= { why: 'to confirm a difference', notBeforeMs };
  return { afterMs: notBeforeMs - nowMs };
}

/** Result of a rebuild. `wait`: the cloud, or a call of a former leader, is not finished. */
type Rebuilt =
  /** `onWritten`: called when the status was written. */
  | { readonly kind: 'rebuilt'; readonly status: NodeEniConfigStatus; readonly onWritten: () => void }
  | { readonly kind: 'wait'; readonly ms: number };

/**
 * Rebuilds the status from the cloud: an older state of the object was restored, or nothing can be read from it. Calls
 * that a former leader may still have in flight are waited for, as for any intent that it left, and so are own calls without an
 * answer: one that comes late would take an address that is given by then. An address that an own call took a moment ago is left
 * out: the description may be older. @throws CloudError
 */
export async function rebuildRestored(
  deps: NodeDeps,
  memory: NodeMemory,
  input: ReconcileInput,
  why: string,
  signal: AbortSignal,
): Promise<Rebuilt> {
  const { clock, leader } = deps;
  const nowMs = clock.monotonicMs();
  const { term, requestTimeoutSeconds } = leader;
  // A leader that left orderly may have sent its last call a moment before the term began.
  const calmMs = term.startedMs + Math.max(term.leaseMs + requestTimeoutSeconds * 1000, MAX_DESCRIPTION_AGE_MS);
  const nextMs = memory.rebuiltMs === undefined ? nowMs : memory.rebuiltMs + MIN_REBUILD_INTERVAL_MS;
  const waitMs = Math.max(calmMs, nextMs, memory.lateUntilMs) - nowMs;
  if (waitMs > 0) return { kind: 'wait', ms: waitMs };
  deps.log.warn('the status is rebuilt from the cloud', { node: input.name, why });
  const snapshot = await observeNode(deps, input, signal);
  if (!isAtRest(snapshot)) return { kind: 'wait', ms: MOVING_MS };
  function onWritten(): void {
    memory.rebuiltMs = nowMs;
    // A description that came too early is corrected by the next one.
    memory.describe = { why: 'an old state was restored', notBeforeMs: nowMs + CONFIRM_MS };
  }
  const { name, status, spec, reservedIps } = input;
  const seen = withoutIps(snapshot, (ip) => isTakenLately(deps.memory.changes, name, ip, nowMs));
  const rebuilt = rebuildStatus(status, spec, seen, deps.ids, undefined, reservedIps());
  return { kind: 'rebuilt', status: rebuilt, onWritten };
}

function withoutIps({ enis, isComplete }: CloudSnapshot, isTaken: (ip: string) => boolean): CloudSnapshot {
  const left = [...enis].map(([id, eni]) => [id, { ...eni, ips: eni.ips.filter((ip) => !isTaken(ip)) }] as const);
  return { enis: new Map(left), isComplete };
}

/** Result of the last description before the object is released. */
type FinalCheck =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'found'; readonly status: NodeEniConfigStatus }
  | { readonly kind: 'wait'; readonly ms: number };

/** Describes whether the cloud holds anything of a node whose object is empty. @throws CloudError */
export async function checkBeforeRelease(
  deps: NodeDeps,
  input: ReconcileInput,
  signal: AbortSignal,
): Promise<FinalCheck> {
  const snapshot = await observeNode(deps, input, signal);
  if (!isAtRest(snapshot)) return { kind: 'wait', ms: MOVING_MS };
  const status = rebuildStatus(input.status, {}, snapshot, deps.ids, undefined, input.reservedIps());
  return status === input.status || (status.eniInfos ?? []).length === 0
    ? { kind: 'nothing' }
    : { kind: 'found', status };
}

/** Describes, or postpones the description on an error: other work for the node goes on. */
async function observeOrPostpone(
  deps: NodeDeps,
  memory: NodeMemory,
  input: ReconcileInput,
  why: string,
  signal: AbortSignal,
): Promise<CloudSnapshot | undefined> {
  try {
    return await observeNode(deps, input, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!isCloudError(error)) throw error;
    deps.log.warn('the cloud could not be described', { node: input.name, why, error });
    memory.describe = { why, notBeforeMs: deps.clock.monotonicMs() + CONFIRM_MS };
    return undefined;
  }
}

async function observeNode(deps: NodeDeps, input: ReconcileInput, signal: AbortSignal): Promise<CloudSnapshot> {
  const { name, uid, status } = input;
  deps.metrics.nodeDescribes.inc();
  const request: ObserveRequest = {
    uid,
    instanceId: status.instanceID,
    eniIds: (status.eniInfos ?? []).map((eni) => eni.eniID),
    scope: 'all',
    isOthers: (eni) => isStaticElsewhere(deps, input, eni) ?? isOfOtherCreator(deps, uid, eni),
  };
  return await trackDescribe(deps, name, () =>
    deps.cloudObserver.observe(request, { priority: 'warm', owner: name, signal }),
  );
}

/** Reports whether a static ENI belongs to another node, or to none; undefined for an ENI that is not static. */
export function isStaticElsewhere(
  { staticEnis, necs }: Pick<NodeDeps, 'staticEnis'> & { readonly necs: Pick<NodeDeps['necs'], 'get'> },
  { name, status }: Pick<ReconcileInput, 'name' | 'status'>,
  eni: Eni,
): boolean | undefined {
  const staticEni = staticEnis?.find(eni.eniId);
  const instanceOf = (nodeName: string) => necs.get(nodeName)?.decoded?.status?.instanceID;
  const node = { name, instanceId: status.instanceID };
  return staticEni && !isStaticEniOf(staticEni, node, eni.attachment?.instanceId, instanceOf);
}

/**
 * Reports whether another existing object created the ENI and still has it. An ENI of a deleted object belongs to the next object of
 * the same instance.
 */
function isOfOtherCreator({ necs }: Pick<NodeDeps, 'necs'>, uid: string, { tags, attachment }: Eni): boolean {
  const creator = tags[ENI_TAG.uid];
  if (creator === undefined || creator === uid) return false;
  const { object, decoded } = necs.get(tags[ENI_TAG.node] ?? '') ?? {};
  return object?.metadata.uid === creator && isWithCreator(decoded?.status?.instanceID, attachment?.instanceId);
}

function isAtRest({ enis, isComplete }: CloudSnapshot): boolean {
  const isMoving = (eni: ObservedEni) => eni.state !== 'AVAILABLE' || eni.pendingIps.length > 0;
  return isComplete && ![...enis.values()].some((eni) => eni.isForeign !== true && isMoving(eni));
}
