import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { markedOnArrival } from './claim-marks.ts';
import type { Ids, Intent, IntentFailure, IntentOutcome, IntentResult, SeenEni } from './decision.ts';
import { directFieldsOf, isDirectCreation } from './direct-creation.ts';
import { eniInfoOf, withAssigned } from './seen-eni.ts';
import { detachingEni, isShared, unboundEni, withEni, withEnis } from './with-enis.ts';

/**
 * Returns the status with the outcome of an intent's call. A final outcome removes the intent in the same status that
 * has its result. When the cloud refused, an address or ENI that was taken out of use stays so, and a new intent
 * requests it again. Idempotent: an intent that is not recorded changes nothing. An address that comes for a claim, or
 * belongs to one, gets its mark at once. Takes ids.
 */
export function finishIntent(
  status: NodeEniConfigStatus,
  intent: Intent,
  outcome: IntentOutcome,
  ids: Ids,
  reserved?: ReadonlyMap<string, string>,
): NodeEniConfigStatus {
  const held = status.intents?.find((candidate) => candidate.id === intent.id);
  if (held === undefined) return status;
  switch (outcome.kind) {
    case 'done':
      return withArrivals(status, withResult(without(status, held), held, outcome.result, ids), held, reserved);
    case 'refused':
      return withoutPromise(without(status, held), held);
    case 'accepted': {
      const { eni, ips, taskId } = outcome;
      const accepted = { ...(eni === undefined ? {} : { eniID: eni.eniID }), ...(ips === undefined ? {} : { ips }) };
      const marked = withIntent(status, { ...held, ...accepted, phase: 'Accepted', taskID: taskId });
      return eni === undefined ? marked : withArrivals(status, withCreated(marked, held, eni, ids), held, reserved);
    }
    case 'unclear': {
      const lastError = errorOf(outcome.error, ids);
      return withIntent(status, { ...held, phase: 'Unclear', lastError, tries: (held.tries ?? 0) + 1 });
    }
  }
}

/** Returns the status with the intent ready to be sent again by the leader of `epoch`. */
export function resendIntent(status: NodeEniConfigStatus, intent: Intent, epoch: number): NodeEniConfigStatus {
  const { taskID: _old, ...rest } = intent;
  return withIntent(status, { ...rest, phase: 'Recorded', leaderEpoch: epoch, tries: (intent.tries ?? 0) + 1 });
}

const LONGEST = { code: 128, message: 1024, requestId: 64 } as const;

function errorOf({ code, message, requestId }: IntentFailure, ids: Ids): NonNullable<Intent['lastError']> {
  return {
    code: code.slice(0, LONGEST.code),
    message: message.slice(0, LONGEST.message),
    ...(requestId === undefined ? {} : { requestID: requestId.slice(0, LONGEST.requestId) }),
    at: ids.now(),
  };
}

function without(status: NodeEniConfigStatus, intent: Intent): NodeEniConfigStatus {
  return { ...status, intents: (status.intents ?? []).filter((candidate) => candidate.id !== intent.id) };
}

function withIntent(status: NodeEniConfigStatus, intent: Intent): NodeEniConfigStatus {
  return { ...status, intents: (status.intents ?? []).map((held) => (held.id === intent.id ? intent : held)) };
}

function withResult(status: NodeEniConfigStatus, intent: Intent, result: IntentResult, ids: Ids): NodeEniConfigStatus {
  const eniID = intent.eniID ?? '';
  switch (result.action) {
    case 'CreateNetworkInterface':
      return withCreated(status, intent, result.eni, ids);
    case 'AttachNetworkInterface': {
      const rest = withoutLeaving(status, eniID, result.eni.ips);
      return withEni(rest, eniID, (eni) => attached(rest, eni, result.eni, ids));
    }
    case 'DetachNetworkInterface':
      return withEni(status, eniID, (eni) => unboundEni(detachingEni(eni)));
    case 'DeleteNetworkInterface':
      return withEni(status, eniID, () => undefined);
    case 'AssignPrivateIpAddresses': {
      const rest = withoutLeaving(status, eniID, result.ips);
      return withEni(rest, eniID, (eni) => withAssigned(rest, eni, result.ips, ids));
    }
    case 'UnassignPrivateIpAddresses':
      return withEni(status, eniID, (eni) => withoutIps(eni, result.ips));
    case 'MigratePrivateIpAddress': {
      const target = intent.targetENIID ?? '';
      const rest = withoutLeaving(status, target, result.ips);
      return withEni(rest, target, (eni) => withAssigned(rest, eni, result.ips, ids));
    }
    case 'ModifyNetworkInterfaceAttribute':
      return withEni(status, eniID, (eni) => ({ ...eni, securityGroups: result.securityGroups }));
  }
}

/** Marks the new addresses: those that the call brought. */
function withArrivals(
  before: NodeEniConfigStatus,
  after: NodeEniConfigStatus,
  { claim, action }: Intent,
  reserved: ReadonlyMap<string, string> | undefined,
): NodeEniConfigStatus {
  const asked = action === 'AttachNetworkInterface' ? undefined : claim;
  if (reserved === undefined && asked === undefined) return after;
  const known = new Set((before.eniInfos ?? []).flatMap((eni) => (eni.addresses ?? []).map((one) => one.assignmentID)));
  const enis = (after.eniInfos ?? []).map((eni) => {
    if (!isShared(eni) || (eni.addresses ?? []).every(({ assignmentID }) => known.has(assignmentID))) return eni;
    const addresses = (eni.addresses ?? []).map((address) =>
      known.has(address.assignmentID) ? address : markedOnArrival(address, reserved, asked),
    );
    return { ...eni, addresses };
  });
  return { ...after, eniInfos: enis };
}

/** Removes the ENI of a creation that was accepted and then failed. */
function withoutPromise(status: NodeEniConfigStatus, intent: Intent): NodeEniConfigStatus {
  if (intent.action !== 'CreateNetworkInterface' || intent.eniID === undefined) return status;
  return withEni(status, intent.eniID, () => undefined);
}

function withCreated(before: NodeEniConfigStatus, intent: Intent, seen: SeenEni, ids: Ids): NodeEniConfigStatus {
  // An exclusive ENI has no addresses for Pods: the Pod uses the ENI's own address.
  if (isDirectCreation(intent)) return withDirect(before, intent, seen);
  const status = withoutLeaving(before, seen.eniID, seen.ips);
  const enis = status.eniInfos ?? [];
  if (enis.some((eni) => eni.eniID === seen.eniID)) {
    return withEni(status, seen.eniID, (eni) => withAssigned(status, eni, seen.ips, ids));
  }
  const bare = unboundEni(eniInfoOf(seen, 'Attaching'));
  return withEnis(status, [...enis, withAssigned(status, bare, seen.ips, ids)]);
}

function withDirect(status: NodeEniConfigStatus, intent: Intent, seen: SeenEni): NodeEniConfigStatus {
  const enis = status.eniInfos ?? [];
  if (enis.some((eni) => eni.eniID === seen.eniID)) return status;
  return withEnis(status, [...enis, { ...unboundEni(eniInfoOf(seen, 'Attaching')), ...directFieldsOf(intent) }]);
}

/**
 * Removes Releasing addresses from the other ENIs that they were on. The cloud has assigned them anew, so they are off
 * those ENIs already, though the answer that says so is still pending.
 */
function withoutLeaving(status: NodeEniConfigStatus, eniID: string, ips: readonly string[]): NodeEniConfigStatus {
  const isGone = (address: NodeEniAddress) => address.state === 'Releasing' && ips.includes(address.ip);
  const enis = status.eniInfos ?? [];
  if (!enis.some((eni) => eni.eniID !== eniID && (eni.addresses ?? []).some(isGone))) return status;
  const left = enis.map((eni) =>
    eni.eniID === eniID ? eni : { ...eni, addresses: (eni.addresses ?? []).filter((address) => !isGone(address)) },
  );
  return withEnis(status, left);
}

function attached(status: NodeEniConfigStatus, eni: NodeEniInfo, seen: SeenEni, ids: Ids): NodeEniInfo {
  const place = seen.deviceIndex === undefined ? {} : { deviceIndex: seen.deviceIndex };
  const { securityGroups } = seen;
  const bound: NodeEniInfo = { ...eni, ...place, state: 'Attached', assignmentID: ids.next(), securityGroups };
  // For a static ENI the status has only the fields of its VpcENI so far.
  if (!isShared(eni)) return { ...eniInfoOf(seen, 'Attached'), ...bound, addresses: eni.addresses ?? [] };
  return withAssigned(status, bound, seen.ips, ids);
}

function withoutIps(eni: NodeEniInfo, ips: readonly string[]): NodeEniInfo {
  const gone = new Set(ips);
  return { ...eni, addresses: (eni.addresses ?? []).filter((address) => !gone.has(address.ip)) };
}
