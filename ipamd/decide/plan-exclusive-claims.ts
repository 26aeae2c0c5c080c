import type { ClaimRequest } from './claim-request.ts';
import { isOtherZone, staticEniOf } from './decide-exclusive-marks.ts';
import type { Answer, Blocked } from './decision.ts';
import { CALL_IN_FLIGHT, checkBreakers, type DecisionContext, RECHECK_MS } from './decision-context.ts';
import type { EniKind } from './eni-kinds.ts';
import { openEniRequests } from './open-requests.ts';
import { blockedBySubnets, planCreation, whyFull } from './plan-creation.ts';

/** Plans new exclusive ENIs for Pods with a claim, only where the claim has none yet. */
export function planExclusiveClaims(context: DecisionContext, kind: EniKind): readonly Answer[] {
  const { view, status } = context;
  if (view.leaving !== 'no') return [];
  return openEniRequests(kind, view, status).map((request) => ({
    ...(blockedByOtherNode(context, request) ??
      blockedByLocation(context, kind, request) ??
      planNewEni(context, kind, request)),
    claim: request.key,
  }));
}

function planNewEni(context: DecisionContext, kind: EniKind, request: ClaimRequest): Answer {
  const { view } = context;
  const { key, subnetIds, securityGroupIds = view.securityGroups } = request;
  return planCreation(context, kind, {
    full: () => whyFull(context, kind, true),
    subnets: view.subnets.filter(({ subnetId }) => subnetIds?.includes(subnetId) ?? true),
    noSubnet: () => (subnetIds === undefined ? blockedBySubnets(context) : blockedBySubnetIds(context, subnetIds)),
    securityGroups: securityGroupIds,
    claim: key,
    priority: 'pod',
  });
}

/** Blocks while another node creates or moves an ENI for the claim: a second ENI would be a duplicate. */
function blockedByOtherNode({ view }: DecisionContext, { key }: ClaimRequest): Blocked | undefined {
  if (view.claimCallsElsewhere?.has(key) !== true)
    return checkBreakers(view, [`claim/${key}`], 'CloudRefused', `no exclusive ENI for ${key}`);
  const message = `another node has a call under way for ${key}`;
  return { kind: 'blocked', reason: 'CallUnderWay', message, afterMs: SOON_MS };
}

/** The reconcile of another node, or of the VpcENI, ends within seconds. */
const SOON_MS = 2_000;

/** Blocks when the ENI that the Pod must have cannot be used here, or not yet. */
function blockedByLocation(context: DecisionContext, kind: EniKind, request: ClaimRequest): Blocked | undefined {
  const { view } = context;
  const { key, ip, source } = request;
  const staticEni = staticEniOf(view, request);
  if (staticEni === undefined && source === undefined && ip === undefined) return undefined;
  const eniId = staticEni?.eniId ?? source?.eniId ?? '';
  if (staticEni !== undefined && isOtherZone(view, staticEni)) {
    const message = `ENI ${staticEni.eniId} (${staticEni.primaryIp}) of ${key} is in zone ${staticEni.zone}, the node in ${view.instance?.zone}`;
    return elsewhere(message);
  }
  if (staticEni?.isAttachable === true) return whyFull(context, kind, true) ?? CALL_IN_FLIGHT;
  if (eniId === '') return elsewhere(`no exclusive ENI of this cluster has the address ${ip}, which ${key} must have`);
  const where = staticEni?.nodeName ?? source?.nodeName ?? 'another node';
  return elsewhere(`ENI ${eniId} of ${key} is still on ${where}`, SOON_MS);
}

function elsewhere(message: string, afterMs = RECHECK_MS): Blocked {
  return { kind: 'blocked', reason: 'DirectENIElsewhere', message, afterMs };
}

function blockedBySubnetIds({ view }: DecisionContext, subnetIds: readonly string[]): Blocked {
  const here = view.subnets.filter(({ subnetId }) => subnetIds.includes(subnetId)).map(({ subnetId }) => subnetId);
  const zone = view.instance?.zone ?? 'of the node';
  if (here.length === 0) {
    const message = `none of the subnets ${subnetIds.join(', ')} is in zone ${zone}, or configured`;
    return { kind: 'blocked', reason: 'NoSubnetInZone', message, afterMs: RECHECK_MS };
  }
  const message = `no free addresses in ${here.join(', ')}`;
  return { kind: 'blocked', reason: 'SubnetExhausted', message, afterMs: RECHECK_MS };
}
