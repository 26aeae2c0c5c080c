import type { Tags } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { CloudSight, SeenEni } from '../nec/decision.ts';
import { driftEniOf, driftKey, findDrift } from '../nec/find-drift.ts';
import { rebuildStatus } from '../nec/rebuild-status.ts';
import type { LookRequest } from './cloud-eyes.ts';
import type { NecEntry } from './nec-entry.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import { notingDescribe } from './note-refusal.ts';
import type { TurnInput } from './plan-turn.ts';

/** A status, repaired or not. `afterMs`: when the cloud is to be described again. */
export type Mended = {
  readonly status: NodeEniConfigStatus;
  readonly afterMs?: number;
  /** What was repaired, for people. */
  readonly mended?: string;
  /** Called when the status was written. */
  readonly onWritten?: () => void;
};

/** A difference counts when two descriptions so far apart show it: one description may be old. */
const CONFIRM_MS = 60_000;
/** The cloud is described again after this while ENIs are between two states. */
const MOVING_MS = 2_000;
/** Shortest time between two rebuilds of a status that stays unreadable. */
const REBUILD_EACH_MS = 60_000;

/** More of them fill an event without being useful. */
const MOST_SHOWN = 10;

/** What could be read of an object. `why` is present when the status must be rebuilt before anything is decided. */
export type ReadStatus = {
  readonly spec: NodeEniConfigSpec;
  readonly status: NodeEniConfigStatus;
  readonly why?: string;
};

/** Returns why the status is too old: the agent has seen a later epoch. Undefined when it has not. */
function restoredWhy(spec: NodeEniConfigSpec, status: NodeEniConfigStatus): string | undefined {
  const seen = spec.observedSupplyEpoch ?? 0;
  const has = status.supplyEpoch ?? 0;
  return seen > has ? `the agent has seen supply epoch ${seen}, the object has ${has}` : undefined;
}

/** Reads spec and status. An unreadable status counts as an old one: it is rebuilt. */
export function readStatus({ object, decoded }: NecEntry): ReadStatus {
  if (decoded !== undefined) {
    const { spec = {}, status = {} } = decoded;
    const restored = restoredWhy(spec, status);
    return { spec, status, ...(restored === undefined ? {} : { why: restored }) };
  }
  const raw = isRecord(object['status']) ? object['status'] : {};
  const spec = isRecord(object['spec']) ? object['spec'] : {};
  const supplyEpoch = wholeOf(raw['supplyEpoch']);
  const instanceID = raw['instanceID'];
  return {
    // Above the object's own epoch, so that everything in the object counts as old.
    spec: { observedSupplyEpoch: Math.max(wholeOf(spec['observedSupplyEpoch']), supplyEpoch + 1) },
    status: { supplyEpoch, ...(typeof instanceID === 'string' && instanceID !== '' ? { instanceID } : {}) },
    why: 'the status of the object cannot be read',
  };
}

/**
 * Describes the cloud when that was requested, and repairs the differences that a description a minute ago showed too.
 * ENIs with a recorded call are left out. So the description waits until the outcome of an ended call is in the object:
 * that call may be the reason for the request.
 * @throws CloudError
 */
export async function lookForDrift(
  deps: NodeDeps,
  memory: NodeMemory,
  input: TurnInput,
  signal: AbortSignal,
): Promise<Mended> {
  const { describe } = memory;
  const { status } = input;
  if (describe === undefined) return { status };
  if ([...memory.calls.values()].some(({ outcome }) => outcome !== undefined)) return { status };
  const nowMs = deps.clock.monotonicMs();
  if (nowMs < describe.notBeforeMs) return { status, afterMs: describe.notBeforeMs - nowMs };
  const sight = await lookOrPostpone(deps, memory, input, describe.why, signal);
  if (sight === undefined) return { status, afterMs: CONFIRM_MS };
  if (memory.describe === describe) memory.describe = undefined;
  const drifts = findDrift(status, sight);
  const keys = new Set(drifts.map(driftKey));
  const busy = new Set((status.intents ?? []).flatMap(({ eniID, targetENIID }) => [eniID, targetENIID]));
  const hidden = [...memory.driftSeenMs.keys()].filter((key) => busy.has(driftEniOf(key)));
  for (const key of memory.driftSeenMs.keys())
    if (!keys.has(key) && !hidden.includes(key)) memory.driftSeenMs.delete(key);
  for (const key of keys) if (!memory.driftSeenMs.has(key)) memory.driftSeenMs.set(key, nowMs);
  const again = { why: 'to see a difference twice', notBeforeMs: nowMs + CONFIRM_MS };
  if (hidden.length > 0) memory.describe ??= again;
  if (drifts.length === 0) return { status, ...(hidden.length > 0 ? { afterMs: CONFIRM_MS } : {}) };
  const isYoung = (key: string) => nowMs - (memory.driftSeenMs.get(key) ?? nowMs) < CONFIRM_MS;
  const young = new Set(drifts.filter((drift) => isYoung(driftKey(drift))).map((drift) => drift.eniID));
  const old = new Set(drifts.map((drift) => drift.eniID).filter((eniID) => !young.has(eniID)));
  deps.observe.onDrift?.({ node: input.name, kinds: drifts.map((drift) => drift.kind) });
  deps.log.warn('the cloud holds something else than the object says', {
    node: input.name,
    drifts: [...keys],
    mended: [...old],
  });
  if (young.size > 0) memory.describe ??= again;
  const afterMs = young.size > 0 || hidden.length > 0 ? { afterMs: CONFIRM_MS } : {};
  if (old.size === 0) return { status, ...afterMs };
  const onWritten = () => memory.driftSeenMs.clear();
  const mended = drifts.filter((drift) => old.has(drift.eniID)).map(driftKey);
  const next = rebuildStatus(status, input.spec, sight, deps.ids, old, input.reservedIps?.());
  return { status: next, ...afterMs, onWritten, mended: mended.slice(0, MOST_SHOWN).join(', ') };
}

/** Result of a rebuild. `wait`: the cloud, or a call of a former leader, is not finished. */
type Rebuilt =
  | { readonly kind: 'mended'; readonly status: NodeEniConfigStatus }
  | { readonly kind: 'wait'; readonly ms: number };

/**
 * Rebuilds the status from the cloud: an older state of the object was restored, or nothing can be read from it. Calls
 * that a former leader may still have in flight are waited for, as for any intent that it left. @throws CloudError
 */
export async function mendRestored(
  deps: NodeDeps,
  memory: NodeMemory,
  input: TurnInput,
  why: string,
  signal: AbortSignal,
): Promise<Rebuilt> {
  const { clock, leader } = deps;
  const nowMs = clock.monotonicMs();
  const calmMs = leader.term.startedMs + leader.term.leaseMs + leader.requestTimeoutSeconds * 1000;
  const nextMs = memory.rebuiltMs === undefined ? nowMs : memory.rebuiltMs + REBUILD_EACH_MS;
  const waitMs = Math.max(calmMs, nextMs) - nowMs;
  if (waitMs > 0) return { kind: 'wait', ms: waitMs };
  deps.log.warn('the object is made anew from the cloud', { node: input.name, why });
  const sight = await look(deps, input, why, signal);
  if (!isAtRest(sight)) return { kind: 'wait', ms: MOVING_MS };
  memory.rebuiltMs = nowMs;
  // A description that came too early is corrected by the next one.
  memory.describe = { why: 'an old state was restored', notBeforeMs: nowMs + CONFIRM_MS };
  const { status, spec, reservedIps } = input;
  return { kind: 'mended', status: rebuildStatus(status, spec, sight, deps.ids, undefined, reservedIps?.()) };
}

/** Result of the last description before the object is released. */
type LastLook =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'found'; readonly status: NodeEniConfigStatus }
  | { readonly kind: 'wait'; readonly ms: number };

/** Describes whether the cloud holds anything of a node whose object is empty. @throws CloudError */
export async function lookWhenReleased(deps: NodeDeps, input: TurnInput, signal: AbortSignal): Promise<LastLook> {
  const sight = await look(deps, input, 'the node gives everything back', signal);
  if (!isAtRest(sight)) return { kind: 'wait', ms: MOVING_MS };
  const status = rebuildStatus(input.status, {}, sight, deps.ids, undefined, input.reservedIps?.());
  return status === input.status || (status.eniInfos ?? []).length === 0
    ? { kind: 'nothing' }
    : { kind: 'found', status };
}

/** Describes, or postpones the description on an error: other work for the node goes on. */
async function lookOrPostpone(
  deps: NodeDeps,
  memory: NodeMemory,
  input: TurnInput,
  why: string,
  signal: AbortSignal,
): Promise<CloudSight | undefined> {
  try {
    return await look(deps, input, why, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!isCloudError(error)) throw error;
    deps.log.warn('the cloud does not describe', { node: input.name, why, error });
    memory.describe = { why, notBeforeMs: deps.clock.monotonicMs() + CONFIRM_MS };
    return undefined;
  }
}

async function look(deps: NodeDeps, input: TurnInput, why: string, signal: AbortSignal): Promise<CloudSight> {
  const { name, uid, status } = input;
  deps.observe.onDescribe?.({ node: name, why });
  const request: LookRequest = {
    uid,
    instanceId: status.instanceID,
    eniIds: (status.eniInfos ?? []).map((eni) => eni.eniID),
    breadth: 'all',
    isOthers: (tags, eniId) => isKeptElsewhere(deps, name, eniId) ?? isAnothers(deps, uid, tags),
  };
  return await notingDescribe(deps, name, () => deps.eyes.look(request, { priority: 'warm', owner: name, signal }));
}

/**
 * Tells whether a static ENI belongs to another node. Its VpcENI decides, not its tags; undefined for an ENI that is
 * not static.
 */
function isKeptElsewhere({ keptEni }: Pick<NodeDeps, 'keptEni'>, name: string, eniId: string): boolean | undefined {
  const kept = keptEni?.(eniId);
  return kept === undefined ? undefined : kept.nodeName !== name;
}

/**
 * Tells whether another existing object created the ENI. An ENI of a deleted object belongs to the next object of the
 * same instance.
 */
function isAnothers({ necs }: Pick<NodeDeps, 'necs'>, uid: string, tags: Tags): boolean {
  const maker = tags['tke-nec-uid'];
  if (maker === undefined || maker === uid) return false;
  return necs.get(tags['tke-node'] ?? '')?.object.metadata.uid === maker;
}

function isAtRest({ enis, isComplete }: CloudSight): boolean {
  const isMoving = (eni: SeenEni) => eni.state !== 'AVAILABLE' || eni.pendingIps.length > 0;
  return isComplete && ![...enis.values()].some((eni) => eni.isForeign !== true && isMoving(eni));
}

function wholeOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
