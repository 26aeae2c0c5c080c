import type { CallPriority } from '../../cloud/cloud.ts';
import { MODE_TAG } from '../../crd/cloud-tags.ts';
import type { Mutation } from '../../crd/intent.ts';
import type { NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from './claim-marks.ts';
import type { ClaimRequest } from './claim-request.ts';
import { desiredGroupsOf, isOtherZone, isRequestedHere, requestOf, staticEniOf } from './decide-exclusive-marks.ts';
import { blockedByCloudLimit, blockedByInstance, blockedByQuota, blockedBySubnets } from './decide-growth.ts';
import type { Blocked, ClaimWait, Ids, Intent, Leader } from './decision.ts';
import {
  beginCall,
  buildDecisionContext,
  CALL_IN_FLIGHT,
  checkBreakers,
  type DecisionContext,
  RECHECK_MS,
  type Step,
} from './decision-context.ts';
import {
  countExclusiveEnis,
  type ExclusiveEniCounts,
  exclusiveEnisOf,
  matchesEni,
  openEniRequests,
} from './exclusive-eni-counts.ts';
import { EXTENSION_ENIS, type NodeView, type SubnetChoice } from './node-view.ts';
import { isSameData } from './same-data.ts';
import { withEni, withPlace } from './with-enis.ts';

/** Why the Pods of one claim wait; without a claim: why the pool waits. */
export type ExclusiveBlocked = Blocked & { readonly claim?: string };

/** The next call for exclusive ENIs, and why the rest waits. */
type ExclusivePlan = { readonly call?: ExclusiveCall; readonly blockers: readonly ExclusiveBlocked[] };

/** A call that has no ids yet. */
type ExclusiveCall = {
  readonly action: Mutation;
  readonly fields: Partial<Intent>;
  readonly priority: CallPriority;
  /** The status with what goes on record beside the intent; absent: unchanged. */
  readonly status?: NodeEniConfigStatus;
};

/** Decides the call that brings the exclusive ENIs closer to what is requested. Takes ids. */
export function decideExclusiveGrowth(context: DecisionContext): Step {
  const { call, blockers } = planExclusiveGrowth(context);
  if (call === undefined) return blockers.find(({ reason }) => reason !== 'CallUnderWay') ?? blockers[0];
  const { action, fields, priority, status } = call;
  const step = beginCall(context, action, fields, status);
  return step?.kind === 'begin' ? { ...step, priority } : step;
}

/**
 * Plans the next call for exclusive ENIs, in this order: security groups of ENIs that Pods wait for; attachment of ENIs
 * that are on no instance; new ENIs for static Pods; new ENIs for the pool.
 */
export function planExclusiveGrowth(context: DecisionContext): ExclusivePlan {
  const supply = countExclusiveEnis(context.view, context.status);
  const blockers: ExclusiveBlocked[] = [];
  const planners = [planGroups, planAttach, planForClaims, planForPool];
  for (const planner of planners) {
    for (const one of planner(context, supply)) {
      if ('action' in one) return { call: one, blockers };
      blockers.push(one);
    }
  }
  return { blockers };
}

/** Reports whether an ENI leaves its place without a Pod or a claim being deleted: a spare one, or one that goes anyway. */
function mayFreePlace({ status, inUse }: NodeView): boolean {
  return (status.eniInfos ?? []).some(({ mode, state, draining, claim, primaryIP = '' }) => {
    const isSpare = mode === 'direct-eni' && claim === undefined && inUse?.has(primaryIP) !== true;
    return isSpare || state === 'Detaching' || draining === true;
  });
}

type Planned = ExclusiveCall | ExclusiveBlocked;

/** Ids of an evaluation that starts no call. */
const NO_IDS: Ids = { next: () => 'looked', now: () => '1970-01-01T00:00:00Z' };

/** Returns why claims whose Pods are on the node wait for their exclusive ENI: by key. */
export function exclusiveWaitsOf(view: NodeView, leader: Leader): ReadonlyMap<string, ClaimWait> {
  const { blockers } = planExclusiveGrowth(buildDecisionContext(view, view.status, leader, NO_IDS));
  const isFull = !mayFreePlace(view);
  return new Map(
    blockers.flatMap(({ claim, message, reason }) => {
      const isNodeFull = reason === 'DirectENILimit' && isFull;
      return claim === undefined ? [] : [[claim, { message, isNodeFull }] as const];
    }),
  );
}

/** Plans changes of security groups. A Pod gets its ENI only once its groups are set. */
function planGroups(context: DecisionContext): readonly Planned[] {
  const { view, busy } = context;
  return exclusiveEnisOf(context.status).flatMap((eni): readonly Planned[] => {
    const { eniID } = eni;
    const request = requestOf(view, eni);
    const securityGroups = desiredGroupsOf(view, eni);
    if (
      request === undefined ||
      !matchesEni(request, eni) ||
      securityGroups === undefined ||
      eni.state !== 'Attached' ||
      busy.has(eniID)
    )
      return [];
    if (isSameData(eni.securityGroups, securityGroups)) return [];
    const text = `cannot set the security groups ${securityGroups.join(', ')} of ${eniID}`;
    const blocked = checkBreakers(context, [`call/ModifyNetworkInterfaceAttribute/${eniID}`], 'CloudRefused', text);
    if (blocked !== undefined) return [{ ...blocked, claim: request.key }];
    const fields = { eniID, securityGroups, claim: request.key };
    return [{ action: 'ModifyNetworkInterfaceAttribute', fields, priority: 'pod' }];
  });
}

/** Plans the attachment of ENIs that Pods wait for, then of pool ENIs that are still needed. */
function planAttach(context: DecisionContext, supply: ExclusiveEniCounts): readonly Planned[] {
  const { view, busy } = context;
  if (view.leaving !== 'no') return [];
  const isDue = (eni: NodeEniInfo) =>
    eni.state === 'Attaching' && eni.draining !== true && !busy.has(eni.eniID) && !view.stuck.has(eni.eniID);
  const due = exclusiveEnisOf(context.status).filter(isDue);
  const ofClaims = due.filter((eni) => isRequestedHere(view, eni));
  const ofPool = due.filter((eni) => eni.claim === undefined).slice(0, Math.max(0, supply.want - supply.have));
  return [...ofClaims, ...ofPool].map((eni) => attach(context, supply, eni));
}

function attach(context: DecisionContext, supply: ExclusiveEniCounts, eni: NodeEniInfo): Planned {
  const { eniID, claim } = eni;
  const { instance } = context.view;
  const key = claim === undefined ? {} : { claim: claimKeyOf(claim) };
  const blocked =
    instance === undefined || !instance.isRunning
      ? blockedByInstance(context)
      : context.isInstanceBusy
        ? CALL_IN_FLIGHT
        : (blockedByPlaces(context) ??
          checkBreakers(context, [`call/AttachNetworkInterface/${eniID}`], 'CloudRefused', `cannot attach ${eniID}`));
  if (blocked !== undefined || instance === undefined) return { ...(blocked ?? blockedByInstance(context)), ...key };
  const fields = { eniID, instanceID: instance.instanceId, ...key };
  const priority = priorityOf(context, supply, claim !== undefined);
  const placed = withPlace(eni, (instance.extensionEnis ?? 0) > 0);
  return { action: 'AttachNetworkInterface', fields, priority, status: withEni(context.status, eniID, () => placed) };
}

/** Blocks when the cloud refuses more ENIs on the places that exclusive ENIs of this instance use. */
function blockedByPlaces(context: DecisionContext): Blocked | undefined {
  if ((context.view.instance?.extensionEnis ?? 0) === 0) return blockedByCloudLimit(context);
  return checkBreakers(context, [EXTENSION_ENIS], 'InstanceENILimit', 'the instance takes no more exclusive ENIs');
}

/** Plans new ENIs for static Pods, only where the claim has none yet. */
function planForClaims(context: DecisionContext, supply: ExclusiveEniCounts): readonly Planned[] {
  if (context.view.leaving !== 'no') return [];
  return openEniRequests(context.view, context.status).map((request) => {
    const one =
      blockedByOtherNode(context, request) ??
      blockedByLocation(context, request) ??
      planCreation(context, supply, request);
    return 'action' in one ? one : { ...one, claim: request.key };
  });
}

/** Blocks while another node creates or moves an ENI for the claim: a second ENI would be a duplicate. */
function blockedByOtherNode(context: DecisionContext, { key }: ClaimRequest): Blocked | undefined {
  if (context.view.claimCallsElsewhere?.has(key) !== true)
    return checkBreakers(context, [`claim/${key}`], 'CloudRefused', `no exclusive ENI for ${key}`);
  const message = `another node has a call under way for ${key}`;
  return { kind: 'blocked', reason: 'CallUnderWay', message, afterMs: SOON_MS };
}

/** Blocks when the ENI that the Pod must have cannot be used here, or not yet. */
function blockedByLocation(context: DecisionContext, request: ClaimRequest): Blocked | undefined {
  const { view } = context;
  const staticEni = staticEniOf(view, request);
  if (staticEni === undefined && request.source === undefined && request.ip === undefined) return undefined;
  const eniId = staticEni?.eniId ?? request.source?.eniId ?? '';
  if (staticEni !== undefined && isOtherZone(view, staticEni)) {
    const message = `ENI ${staticEni.eniId} (${staticEni.primaryIp}) of ${request.key} is in zone ${staticEni.zone}, the node in ${view.instance?.zone}`;
    return { kind: 'blocked', reason: 'DirectENIElsewhere', message, afterMs: RECHECK_MS };
  }
  if (staticEni?.isAttachable === true)
    return blockedBySlots(context, countExclusiveEnis(view, context.status), request) ?? CALL_IN_FLIGHT;
  if (eniId === '') {
    const message = `no exclusive ENI of this cluster has the address ${request.ip}, which ${request.key} must have`;
    return { kind: 'blocked', reason: 'DirectENIElsewhere', message, afterMs: RECHECK_MS };
  }
  const where = staticEni?.nodeName ?? request.source?.nodeName ?? 'another node';
  const message = `ENI ${eniId} of ${request.key} is still on ${where}`;
  return { kind: 'blocked', reason: 'DirectENIElsewhere', message, afterMs: SOON_MS };
}

/** The reconcile of another node, or of the VpcENI, ends within seconds. */
const SOON_MS = 2_000;

function planForPool(context: DecisionContext, supply: ExclusiveEniCounts): readonly Planned[] {
  const { view } = context;
  const need = supply.want - supply.have - supply.coming;
  if (need > 0) return [planCreation(context, supply, undefined)];
  const warm = view.spec.directENIMinWarmTarget ?? WARM_TARGET;
  const isCapped = view.leaving === 'no' && supply.want < supply.demand - warm;
  return isCapped ? [blockedByExclusiveLimit(supply)] : [];
}

/** Spare exclusive ENIs of a node when its spec contains no number. */
const WARM_TARGET = 1;

function planCreation(
  context: DecisionContext,
  supply: ExclusiveEniCounts,
  request: ClaimRequest | undefined,
): ExclusiveCall | Blocked {
  const { view } = context;
  const { instance } = view;
  if (instance === undefined || !instance.isRunning) return blockedByInstance(context);
  const full = blockedBySlots(context, supply, request);
  if (full !== undefined) return full;
  if (context.isInstanceBusy) return CALL_IN_FLIGHT;
  const blocked = blockedByPlaces(context) ?? blockedByQuota(context);
  if (blocked !== undefined) return blocked;
  const subnet = chooseSubnet(context, request);
  if (subnet === undefined)
    return request?.subnetIds === undefined
      ? blockedBySubnets(context)
      : blockedBySubnetIds(context, request.subnetIds);
  const groups = request?.securityGroupIds ?? view.securityGroups ?? [];
  const fields = {
    subnetID: subnet.subnetId,
    tags: { [MODE_TAG.name]: MODE_TAG.direct },
    ...(groups.length === 0 ? {} : { securityGroups: groups }),
    ...(request === undefined ? {} : { claim: request.key }),
  };
  const priority = priorityOf(context, supply, request !== undefined);
  return { action: 'CreateNetworkInterface', fields, priority };
}

/** Selects the subnet. An exclusive ENI uses one address: its own. */
function chooseSubnet({ view }: DecisionContext, request: ClaimRequest | undefined): SubnetChoice | undefined {
  return view.subnets
    .filter(({ subnetId }) => request?.subnetIds?.includes(subnetId) ?? true)
    .filter(({ subnetId, isBlocked, freeIps }) => !isBlocked && freeIps > 0 && !view.blocked.has(`subnet/${subnetId}`))
    .reduce<SubnetChoice | undefined>(
      (best, one) => (best !== undefined && best.freeIps >= one.freeIps ? best : one),
      undefined,
    );
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

/** Blocks when the node has as many ENIs as it may have; returns undefined when an ENI slot is free. */
function blockedBySlots(
  { view }: DecisionContext,
  supply: ExclusiveEniCounts,
  request: ClaimRequest | undefined,
): Blocked | undefined {
  if (supply.freeSlots > 0) return undefined;
  const isSlotReleasing = supply.have + supply.coming + supply.staticEnis < supply.limit && request === undefined;
  if (!isSlotReleasing) return blockedByExclusiveLimit(supply);
  const message = `all ${view.instance?.extensionEnis || view.instance?.secondaryEnis || 0} ENI slots of the instance for exclusive ENIs are used, some by ENIs that are being released`;
  return { kind: 'blocked', reason: 'InstanceENILimit', message, afterMs: RECHECK_MS };
}

function blockedByExclusiveLimit({ demand, staticEnis, awaited, limit, have, coming }: ExclusiveEniCounts): Blocked {
  const demandText = `${demand + staticEnis + awaited} exclusive ENIs are requested, ${staticEnis + awaited} of them for claims`;
  const message = `${demandText}; the node may have ${limit} beside its shared ones, and has ${have + coming + staticEnis}`;
  return { kind: 'blocked', reason: 'DirectENILimit', message, afterMs: RECHECK_MS };
}

function priorityOf({ view }: DecisionContext, { have, want }: ExclusiveEniCounts, isForClaim: boolean): CallPriority {
  const warm = view.spec.directENIMinWarmTarget ?? WARM_TARGET;
  return isForClaim || have < want - warm ? 'pod' : 'warm';
}
