import { isExclusiveCreation } from '../../crd/eni-places.ts';
import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimMarkOf, withClaimMark } from './claim-marks.ts';
import type { Ids, Intent, IntentFailure, IntentOutcome, IntentResult, ObservedEni } from './decision.ts';
import { eniInfoOf, withAssigned } from './observed-eni.ts';
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
  const recorded = status.intents?.find((candidate) => candidate.id === intent.id);
  if (recorded === undefined) return status;
  switch (outcome.kind) {
    case 'done':
      return withClaimMarks(
        status,
        withResult(without(status, recorded), recorded, outcome.result, ids),
        recorded,
        reserved,
      );
    case 'refused':
      return withoutFailedCreation(without(status, recorded), recorded);
    case 'accepted': {
      const { eni, ips, taskId } = outcome;
      const accepted = { ...(eni === undefined ? {} : { eniID: eni.eniID }), ...(ips === undefined ? {} : { ips }) };
      const marked = withIntent(status, { ...recorded, ...accepted, phase: 'Accepted', taskID: taskId });
      return eni === undefined
        ? marked
        : withClaimMarks(status, withCreated(marked, recorded, eni, ids), recorded, reserved);
    }
    case 'unclear': {
      const lastError = errorOf(outcome.error, ids);
      return withIntent(status, { ...recorded, phase: 'Unclear', lastError, tries: recorded.tries ?? 1 });
    }
  }
}

/** Returns the status with the intent ready to be sent again by the leader of `epoch`: `tries` counts that send too. */
export function resendIntent(status: NodeEniConfigStatus, intent: Intent, epoch: number): NodeEniConfigStatus {
  const { taskID: _old, ...rest } = intent;
  return withIntent(status, { ...rest, phase: 'Recorded', leaderEpoch: epoch, tries: (intent.tries ?? 1) + 1 });
}

const MAX_LENGTH = { code: 128, message: 1024, requestId: 64 } as const;

function errorOf({ code, message, requestId }: IntentFailure, ids: Ids): NonNullable<Intent['lastError']> {
  return {
    code: code.slice(0, MAX_LENGTH.code),
    message: message.slice(0, MAX_LENGTH.message),
    ...(requestId === undefined ? {} : { requestID: requestId.slice(0, MAX_LENGTH.requestId) }),
    at: ids.now(),
  };
}

function without(status: NodeEniConfigStatus, intent: Intent): NodeEniConfigStatus {
  return { ...status, intents: (status.intents ?? []).filter((candidate) => candidate.id !== intent.id) };
}

function withIntent(status: NodeEniConfigStatus, intent: Intent): NodeEniConfigStatus {
  return {
    ...status,
    intents: (status.intents ?? []).map((recorded) => (recorded.id === intent.id ? intent : recorded)),
  };
}

function withResult(status: NodeEniConfigStatus, intent: Intent, result: IntentResult, ids: Ids): NodeEniConfigStatus {
  const eniID = intent.eniID ?? '';
  switch (result.action) {
    case 'CreateNetworkInterface':
      return withCreated(status, intent, result.eni, ids);
    case 'AttachNetworkInterface': {
      const rest = withoutReleasing(status, eniID, result.eni.ips);
      return withEni(rest, eniID, (eni) => attached(rest, eni, result.eni, ids));
    }
    case 'DetachNetworkInterface':
      return withEni(status, eniID, (eni) => unboundEni(detachingEni(eni)));
    case 'DeleteNetworkInterface':
      return withEni(status, eniID, () => undefined);
    case 'AssignPrivateIpAddresses': {
      const rest = withoutReleasing(status, eniID, result.ips);
      return withEni(rest, eniID, (eni) => withAssigned(rest, eni, result.ips, ids));
    }
    case 'UnassignPrivateIpAddresses':
      return withEni(status, eniID, (eni) => withoutIps(eni, result.ips));
    case 'MigratePrivateIpAddress': {
      const target = intent.targetENIID ?? '';
      const rest = withoutReleasing(status, target, result.ips);
      return withEni(rest, target, (eni) => withAssigned(rest, eni, result.ips, ids));
    }
    case 'ModifyNetworkInterfaceAttribute':
      return withEni(status, eniID, (eni) => withGroups(eni, result.securityGroups));
  }
}

/** Sets the groups of an ENI. Those that are taken away without others instead are noted, to be given back. */
function withGroups(eni: NodeEniInfo, securityGroups: readonly string[]): NodeEniInfo {
  const { clearedSecurityGroups: before, ...rest } = eni;
  if (securityGroups.length > 0) return { ...rest, securityGroups };
  const { securityGroups: had = [] } = eni;
  const cleared = had.length > 0 ? had : before;
  return { ...rest, securityGroups, ...(cleared === undefined ? {} : { clearedSecurityGroups: cleared }) };
}

/** Marks the new addresses: those that the call brought. */
function withClaimMarks(
  before: NodeEniConfigStatus,
  after: NodeEniConfigStatus,
  { claim, action }: Intent,
  reserved: ReadonlyMap<string, string> | undefined,
): NodeEniConfigStatus {
  const callClaim = action === 'AttachNetworkInterface' ? undefined : claim;
  if (reserved === undefined && callClaim === undefined) return after;
  const known = new Set((before.eniInfos ?? []).flatMap((eni) => (eni.addresses ?? []).map((one) => one.assignmentID)));
  const enis = (after.eniInfos ?? []).map((eni) => {
    if (!isShared(eni) || (eni.addresses ?? []).every(({ assignmentID }) => known.has(assignmentID))) return eni;
    const addresses = (eni.addresses ?? []).map((address) =>
      known.has(address.assignmentID) ? address : withClaimMark(address, reserved, callClaim),
    );
    return { ...eni, addresses };
  });
  return { ...after, eniInfos: enis };
}

/** Removes the ENI of a creation that was accepted and then failed. */
function withoutFailedCreation(status: NodeEniConfigStatus, intent: Intent): NodeEniConfigStatus {
  if (intent.action !== 'CreateNetworkInterface' || intent.eniID === undefined) return status;
  return withEni(status, intent.eniID, () => undefined);
}

function withCreated(
  before: NodeEniConfigStatus,
  intent: Intent,
  observed: ObservedEni,
  ids: Ids,
): NodeEniConfigStatus {
  // An exclusive ENI has no addresses for Pods: the Pod uses the ENI's own address.
  if (isExclusiveCreation(intent)) return withExclusive(before, intent, observed);
  const status = withoutReleasing(before, observed.eniID, observed.ips);
  const enis = status.eniInfos ?? [];
  if (enis.some((eni) => eni.eniID === observed.eniID)) {
    return withEni(status, observed.eniID, (eni) => withAssigned(status, eni, observed.ips, ids));
  }
  const bare = unboundEni(eniInfoOf(observed, 'Attaching'));
  return withEnis(status, [...enis, withAssigned(status, bare, observed.ips, ids)]);
}

function withExclusive(status: NodeEniConfigStatus, intent: Intent, observed: ObservedEni): NodeEniConfigStatus {
  const enis = status.eniInfos ?? [];
  if (enis.some((eni) => eni.eniID === observed.eniID)) return status;
  const claim = intent.claim === undefined ? {} : { claim: claimMarkOf(intent.claim) };
  const bare = unboundEni(eniInfoOf(observed, 'Attaching'));
  return withEnis(status, [...enis, { ...bare, mode: 'direct-eni', ...claim }]);
}

/**
 * Removes Releasing addresses from the other ENIs that they were on. The cloud has assigned them again, so they are off
 * those ENIs already, though the answer that says so is still pending.
 */
function withoutReleasing(status: NodeEniConfigStatus, eniID: string, ips: readonly string[]): NodeEniConfigStatus {
  const isReassigned = (address: NodeEniAddress) => address.state === 'Releasing' && ips.includes(address.ip);
  const enis = status.eniInfos ?? [];
  if (!enis.some((eni) => eni.eniID !== eniID && (eni.addresses ?? []).some(isReassigned))) return status;
  const left = enis.map((eni) =>
    eni.eniID === eniID
      ? eni
      : { ...eni, addresses: (eni.addresses ?? []).filter((address) => !isReassigned(address)) },
  );
  return withEnis(status, left);
}

function attached(status: NodeEniConfigStatus, eni: NodeEniInfo, observed: ObservedEni, ids: Ids): NodeEniInfo {
  const device = observed.deviceIndex === undefined ? {} : { deviceIndex: observed.deviceIndex };
  const { securityGroups } = observed;
  const bound: NodeEniInfo = { ...eni, ...device, state: 'Attached', assignmentID: ids.next(), securityGroups };
  // For a static ENI the status has only the fields of its VpcENI so far.
  if (!isShared(eni)) return { ...eniInfoOf(observed, 'Attached'), ...bound, addresses: eni.addresses ?? [] };
  return withAssigned(status, bound, observed.ips, ids);
}

function withoutIps(eni: NodeEniInfo, ips: readonly string[]): NodeEniInfo {
  const removed = new Set(ips);
  return { ...eni, addresses: (eni.addresses ?? []).filter((address) => !removed.has(address.ip)) };
}
