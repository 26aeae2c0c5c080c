import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { CloudSnapshot, Intent, IntentOutcome, IntentResult, ObservedEni } from './decision.ts';
import { isSameData } from './same-data.ts';

/** Error code of a call for an ENI that a description lacks. */
export const ENI_GONE_CODE = 'ENI_GONE';

/** What a description shows about a call: its outcome, or that it is not done and may be sent again. */
export type IntentEvaluation = IntentOutcome | 'repeat';

/**
 * Evaluates from a description what became of a call without an answer. `repeat` means that sending the call again does
 * no harm: it has the same ClientToken, or the description shows that it is not done. An ENI between two states stays
 * unclear until it is at rest. A description may be older than the last call: addresses that were taken off an ENI of the
 * node a moment ago are no result of an assignment.
 * @param isTaken reports such an address
 */
export function evaluateIntent(
  intent: Intent,
  snapshot: CloudSnapshot,
  status: NodeEniConfigStatus,
  isTaken: (ip: string) => boolean = () => false,
): IntentEvaluation {
  if (intent.action === 'CreateNetworkInterface') return evaluateCreation(intent, snapshot);
  if (intent.action === 'MigratePrivateIpAddress') return evaluateMigration(intent, snapshot);
  const eniID = intent.eniID ?? '';
  const eni = snapshot.enis.get(eniID);
  if (eni === undefined) return evaluateWithoutEni(intent);
  switch (intent.action) {
    case 'AttachNetworkInterface':
      return evaluateAttachment(intent, eni);
    case 'DetachNetworkInterface':
      return evaluateDetachment(intent, eni);
    case 'DeleteNetworkInterface':
      if (eni.state !== 'AVAILABLE') return moving(eni);
      if (eni.instanceID === undefined) return 'repeat';
      return refused('STILL_ATTACHED', `${eniID} is on instance ${eni.instanceID}`);
    case 'AssignPrivateIpAddresses':
      return evaluateAssignment(intent, eni, status, isTaken);
    case 'UnassignPrivateIpAddresses':
      return evaluateUnassignment(intent, eni);
    case 'ModifyNetworkInterfaceAttribute': {
      const securityGroups = intent.securityGroups ?? [];
      return isSameData(eni.securityGroups, securityGroups)
        ? done({ action: intent.action, securityGroups })
        : 'repeat';
    }
    default:
      return refused('UNKNOWN_ACTION', `this release makes no ${intent.action} for a node`);
  }
}

function evaluateCreation(intent: Intent, { enis }: CloudSnapshot): IntentEvaluation {
  const eni = [...enis.values()].find((one) => one.eniID === intent.eniID || one.name === intent.resourceName);
  // The ClientToken makes the cloud create it once, even if the first request is only late.
  if (eni === undefined) return 'repeat';
  return eni.state === 'PENDING' || eni.state === 'DELETING'
    ? moving(eni)
    : done({ action: 'CreateNetworkInterface', eni });
}

function evaluateWithoutEni({ action, ips = [], eniID = '' }: Intent): IntentEvaluation {
  switch (action) {
    case 'DetachNetworkInterface':
    case 'DeleteNetworkInterface':
      return done({ action });
    case 'UnassignPrivateIpAddresses':
      return done({ action, ips });
    default:
      return refused(ENI_GONE_CODE, `${eniID} does not exist any more`);
  }
}

function evaluateAttachment(intent: Intent, eni: ObservedEni): IntentEvaluation {
  if (eni.state !== 'AVAILABLE') return moving(eni);
  if (eni.instanceID === intent.instanceID) return done({ action: 'AttachNetworkInterface', eni });
  if (eni.instanceID === undefined) return 'repeat';
  return refused('ATTACHED_ELSEWHERE', `${eni.eniID} is on instance ${eni.instanceID}`);
}

function evaluateDetachment(intent: Intent, eni: ObservedEni): IntentEvaluation {
  if (eni.state !== 'AVAILABLE') return moving(eni);
  return eni.instanceID === intent.instanceID ? 'repeat' : done({ action: 'DetachNetworkInterface' });
}

/**
 * Error code of a move that did not happen. It is not sent again unchanged: the released address may serve a Pod again
 * by now.
 */
export const NOT_MOVED_CODE = 'NOT_MOVED';

/** Evaluates a move: the descriptions of both ENIs show where the address is. */
function evaluateMigration(
  { action, eniID = '', targetENIID = '', ips = [] }: Intent,
  { enis }: CloudSnapshot,
): IntentEvaluation {
  if (action !== 'MigratePrivateIpAddress') return 'repeat';
  const [source, target] = [enis.get(eniID), enis.get(targetENIID)];
  if (target === undefined) return refused(ENI_GONE_CODE, `${targetENIID} does not exist any more`);
  if (ips.every((ip) => target.ips.includes(ip))) return done({ action, ips });
  const between = [target, source].find((eni) => ips.some((ip) => eni?.pendingIps.includes(ip) === true));
  if (between !== undefined) return moving(between);
  return refused(NOT_MOVED_CODE, `${ips.join(', ')} is not on ${targetENIID}`);
}

/**
 * Evaluates an assignment. The call brought the addresses that its answer named; without an answer, those that the
 * object does not contain. For requested addresses it counts whether they are there. Sending it again brings the answer.
 */
function evaluateAssignment(
  { ips: wanted, ipCount }: Intent,
  eni: ObservedEni,
  status: NodeEniConfigStatus,
  isTaken: (ip: string) => boolean,
): IntentEvaluation {
  if (wanted !== undefined && ipCount === undefined) {
    if (wanted.every((ip) => eni.ips.includes(ip))) return done({ action: 'AssignPrivateIpAddresses', ips: wanted });
    return wanted.some((ip) => eni.pendingIps.includes(ip)) ? moving(eni) : 'repeat';
  }
  const entry = status.eniInfos?.find((candidate) => candidate.eniID === eni.eniID);
  const known = new Set((entry?.addresses ?? []).map((address) => address.ip));
  const isNew = (ip: string) => !known.has(ip) && (wanted?.includes(ip) ?? !isTaken(ip));
  if (eni.pendingIps.some(isNew)) return moving(eni);
  const ips = eni.ips.filter(isNew);
  return ips.length > 0 ? done({ action: 'AssignPrivateIpAddresses', ips }) : 'repeat';
}

/** Evaluates an unassignment: addresses that are off the ENI are done; the next intent unassigns the rest. */
function evaluateUnassignment({ action, ips = [] }: Intent, eni: ObservedEni): IntentEvaluation {
  if (action !== 'UnassignPrivateIpAddresses') return 'repeat';
  if (ips.some((ip) => eni.pendingIps.includes(ip))) return moving(eni);
  const unassigned = ips.filter((ip) => !eni.ips.includes(ip));
  return unassigned.length > 0 || ips.length === 0 ? done({ action, ips: unassigned }) : 'repeat';
}

function done(result: IntentResult): IntentOutcome {
  return { kind: 'done', result };
}

function refused(code: string, message: string): IntentOutcome {
  return { kind: 'refused', error: { code, message } };
}

/** Error code of an outcome that waits until the cloud has settled: check again soon, nothing was sent in between. */
export const MOVING_CODE = 'ENI_MOVING';

function moving(eni: ObservedEni): IntentOutcome {
  return {
    kind: 'unclear',
    error: { code: MOVING_CODE, message: `${eni.eniID} is between two states (${eni.state})` },
  };
}
