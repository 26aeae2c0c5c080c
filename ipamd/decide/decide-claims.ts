import { isInCidr } from '../../crd/ip-text.ts';
import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isUsable } from './address-counts.ts';
import { claimKeyOf } from './claim-marks.ts';
import type { ClaimRequest } from './claim-request.ts';
import { blockedByCloudLimit, blockedByInstance, blockedByQuota } from './decide-growth.ts';
import type { Blocked, ClaimWait, Ids, Leader } from './decision.ts';
import {
  beginCall,
  buildDecisionContext,
  CALL_IN_FLIGHT,
  type DecisionContext,
  RECHECK_MS,
  type Step,
} from './decision-context.ts';
import { eniPlacesOf, freeEniSlots } from './eni-slots.ts';
import type { NodeView, SubnetChoice } from './node-view.ts';
import { usedIps } from './observed-eni.ts';
import { offersOf } from './offers.ts';
import { acceptableIpsOf, fitsSubnet } from './place-claims.ts';

/** The next call for static addresses, and why the others wait: by key of the claim. */
type ClaimSteps = { readonly step: Step; readonly waits: ReadonlyMap<string, ClaimWait> };

/**
 * Decides how a static address comes to a Pod on this node: assigned by this address, or as any address, on a suitable
 * ENI; moved from another node's ENI whose agent has released it; or first a new ENI. A claim that is blocked does not
 * delay others. Takes ids.
 */
export function decideClaims(context: DecisionContext): ClaimSteps {
  const waits = new Map<string, ClaimWait>();
  let earliest: Blocked | undefined;
  for (const request of context.claims.open) {
    const step = decideRequest(context, request);
    if (step?.kind === 'begin') return { step: { ...step, priority: 'pod' }, waits };
    if (step === undefined) continue;
    waits.set(request.key, { message: step.message, isNodeFull: step.reason === 'NodeFull' });
    if (earliest === undefined || step.afterMs < earliest.afterMs) earliest = step;
  }
  return { step: earliest, waits };
}

/** Ids of an evaluation that starts no call. */
const NO_IDS: Ids = { next: () => 'looked', now: () => '1970-01-01T00:00:00Z' };

/** Returns why claims whose Pods are on the node wait for their address: by key. */
export function claimWaitsOf(view: NodeView, leader: Leader): ReadonlyMap<string, ClaimWait> {
  return decideClaims(buildDecisionContext(view, view.status, leader, NO_IDS)).waits;
}

/**
 * Waits for calls of other nodes: until they have ended, nothing is changed for their claims here. No write tells this
 * node that they have ended.
 */
export function decideOthersCalls({ view }: DecisionContext): Step {
  const requests = [...(view.claims?.values() ?? [])];
  const waiter = requests.find(({ key, goal }) => goal !== 'keep' && view.claimCallsElsewhere?.has(key) === true);
  return waiter === undefined
    ? undefined
    : waiting(`another node has a call for ${waiter.key} under way`, OTHERS_RECHECK_MS);
}

function decideRequest(context: DecisionContext, request: ClaimRequest): Step {
  const { view } = context;
  if (view.claimCallsElsewhere?.has(request.key) === true)
    return waiting('another node has a call for it under way', OTHERS_RECHECK_MS);
  const refused = refusedKey(view, request);
  if (refused !== undefined) {
    const refusal = view.refusals?.get(refused);
    return waiting(refusal?.message ?? 'the cloud refused', refusal?.afterMs);
  }
  const eni = context.claims.eniOf.get(request.key);
  if (eni === undefined) return createEni(context, request);
  if (eni.state !== 'Attached') return waiting(`ENI ${eni.eniID} is being attached`);
  if (context.busy.has(eni.eniID)) return waiting(CALL_IN_FLIGHT.message, CALL_IN_FLIGHT.afterMs);
  return request.source === undefined ? assign(context, request, eni) : migrate(context, request, eni);
}

/**
 * Finds the open breaker that blocks a request. A refusal of one address blocks neither another address nor the claim.
 */
function refusedKey({ blocked }: NodeView, request: ClaimRequest): string | undefined {
  const key = `claim/${request.key}`;
  if (blocked.has(key)) return key;
  const ipKeys = (acceptableIpsOf(request) ?? []).map((ip) => `${key}/${ip}`);
  return ipKeys.every((one) => blocked.has(one)) ? ipKeys[0] : undefined;
}

/** Assigns an address that is on no ENI. */
function assign(context: DecisionContext, request: ClaimRequest, eni: NodeEniInfo): Step {
  const { eniID, subnetCIDR } = eni;
  const acceptable = acceptableIpsOf(request);
  if (acceptable === undefined) {
    const subnet = context.view.subnets.find(({ subnetId }) => subnetId === eni.subnetID);
    if (subnet !== undefined && (subnet.isBlocked || subnet.freeIps < 1))
      return waiting(`no free addresses in ${subnet.subnetId}`);
    return beginCall(context, 'AssignPrivateIpAddresses', { eniID, ipCount: 1, claim: request.key });
  }
  const taken = usedIps(context.status);
  for (const ip of acceptable) if (context.view.blocked.has(`claim/${request.key}/${ip}`)) taken.add(ip);
  for (const intent of context.status.intents ?? []) for (const ip of intent.ips ?? []) taken.add(ip);
  const fitting = acceptable.filter((ip) => subnetCIDR !== undefined && isInCidr(ip, subnetCIDR));
  const ip = fitting.find((one) => !taken.has(one));
  if (ip === undefined) return waiting(inUseMessage(context, fitting), CALL_IN_FLIGHT.afterMs);
  return beginCall(context, 'AssignPrivateIpAddresses', { eniID, ips: [ip], claim: request.key });
}

function inUseMessage({ status }: DecisionContext, ips: readonly string[]): string {
  const ownEni = (status.eniInfos ?? []).find(({ primaryIP = '' }) => ips.includes(primaryIP));
  if (ownEni === undefined) return `${ips.join(', ')} is in use on this node`;
  const rest = ownEni.draining === true ? 'which is being released for it' : 'which serves Pods';
  return `${ownEni.primaryIP} is the primary address of ENI ${ownEni.eniID} of this node, ${rest}`;
}

/** Moves an address from another node's ENI, once that node's agent has released it. */
function migrate(context: DecisionContext, { key, ip, source }: ClaimRequest, { eniID }: NodeEniInfo): Step {
  if (source === undefined || ip === undefined) return waiting('it is not known which address is to be moved');
  const { nodeName, eniId, isAttached, isReleased } = source;
  if (!isReleased) return waiting(`${ip} is in use on node ${nodeName}`);
  if (!isAttached) return waiting(`${ip} is being unassigned from ENI ${eniId} of node ${nodeName}`);
  return beginCall(context, 'MigratePrivateIpAddress', { eniID: eniId, targetENIID: eniID, ips: [ip], claim: key });
}

/** Creates an ENI in a suitable subnet when no suitable ENI has free capacity. */
function createEni(context: DecisionContext, request: ClaimRequest): Step {
  const choices = [...context.view.subnets, ...(context.view.claimSubnets ?? [])];
  const fitting = choices.filter(({ subnetId, cidr }) => fitsSubnet(context.view, request, subnetId, cidr));
  if (fitting.length === 0) return waiting(`no subnet of this node has the address: ${requestText(request)}`);
  if (willHaveFreeSlot(context, request))
    return waiting('an address of the pool is being released there', CALL_IN_FLIGHT.afterMs);
  const { instance } = context.view;
  const blocked =
    instance?.isRunning === true
      ? (blockedByLimit(context, request) ?? blockedByCloudLimit(context) ?? blockedByQuota(context))
      : blockedByInstance(context);
  if (blocked?.reason === 'NodeFull') return blocked;
  if (instance === undefined || blocked !== undefined) return waiting(blocked?.message ?? '', blocked?.afterMs);
  if (context.isInstanceBusy)
    return waiting('another ENI of this node is being created or attached', CALL_IN_FLIGHT.afterMs);
  const subnet = subnetWithMostFreeIps(context.view, fitting);
  if (subnet === undefined)
    return waiting(`no free addresses in ${fitting.map(({ subnetId }) => subnetId).join(', ')}`);
  // An ENI for a particular address is created without secondary addresses.
  const initialIps = acceptableIpsOf(request) === undefined ? { ipCount: 1 } : {};
  const { vpcId, instanceId, instanceType, zone } = instance;
  const status = { ...context.status, instanceID: instanceId, instanceType, zone, vpcID: vpcId };
  const groups = context.view.securityGroups ?? [];
  const securityGroups = groups.length === 0 ? {} : { securityGroups: groups };
  const fields = { subnetID: subnet.subnetId, ...initialIps, ...securityGroups, claim: request.key };
  return beginCall(context, 'CreateNetworkInterface', fields, status);
}

/**
 * Reports whether a suitable ENI has addresses that the pool does not need, so that it has free capacity once they are
 * unassigned.
 */
function willHaveFreeSlot({ view, status, supply }: DecisionContext, request: ClaimRequest): boolean {
  const offers = offersOf({ ...view, status });
  const fitting = (status.eniInfos ?? []).filter(({ eniID, subnetID, subnetCIDR }) => {
    const isStuck = view.stuck.has(eniID) || view.blocked.has(`call/UnassignPrivateIpAddresses/${eniID}`);
    return !isStuck && fitsSubnet(view, request, subnetID, subnetCIDR);
  });
  return fitting.filter(isUsable).some((eni) => {
    const pooled = (eni.addresses ?? []).filter(({ claim }) => claim === undefined);
    if (eni.state === 'Attaching') return pooled.length > 0 && supply.have + supply.coming > supply.want;
    const isSurplus = supply.have > supply.want;
    return (
      eni.state === 'Attached' &&
      pooled.some((address) => address.state === 'Releasing' || (isSurplus && offers.isOffered(address)))
    );
  });
}

/**
 * Blocks when no ENI has free capacity and the node may have no further ENI. Capacity becomes free when the pool
 * releases addresses or Pods are deleted. When the pool has none to release, only the latter helps.
 */
function blockedByLimit({ view, status }: DecisionContext, request: ClaimRequest): Blocked | undefined {
  if (freeEniSlots(view, status) > 0) return undefined;
  const fitting = (status.eniInfos ?? []).filter(
    (eni) => isUsable(eni) && eni.state !== 'Detaching' && fitsSubnet(view, request, eni.subnetID, eni.subnetCIDR),
  );
  const { serving } = eniPlacesOf(view, status);
  const message = `none of the ${fitting.length} suitable ENIs of this node has a free address slot, and the node, which has ${serving} shared ENIs, may have no more`;
  const isNodeFull = !fitting.some((eni) => mayEmptySlot(view, eni)) && !isEniLeaving(status);
  return { ...waiting(message, CAPACITY_RECHECK_MS), ...(isNodeFull ? { reason: 'NodeFull' as const } : {}) };
}

/** Reports whether an address of the ENI is neither in use by a Pod nor held for one. */
function mayEmptySlot({ inUse, claims }: NodeView, { addresses = [] }: NodeEniInfo): boolean {
  const isIdle = ({ ip, claim, state }: NodeEniAddress): boolean => {
    if (state === 'Releasing') return true;
    if (claim === undefined) return inUse?.has(ip) !== true;
    const goal = claims?.get(claimKeyOf(claim))?.goal;
    return goal !== 'here' && goal !== 'keep';
  };
  return addresses.some(isIdle);
}

/** Reports whether an ENI is about to leave its place to another one. */
function isEniLeaving({ eniInfos = [] }: NodeEniConfigStatus): boolean {
  return eniInfos.some(({ state, draining }) => state === 'Detaching' || draining === true);
}

const OTHERS_RECHECK_MS = 2_000;
/** The agent reads the number of static addresses and offers spare ones. */
const CAPACITY_RECHECK_MS = 10_000;

/** Selects the subnet with the most free addresses. A static address uses none of them; the ENI itself uses one. */
function subnetWithMostFreeIps({ blocked }: NodeView, subnets: readonly SubnetChoice[]): SubnetChoice | undefined {
  const open = subnets.filter(
    ({ subnetId, isBlocked, freeIps }) => !isBlocked && freeIps > 1 && !blocked.has(`subnet/${subnetId}`),
  );
  return open.reduce<SubnetChoice | undefined>(
    (best, one) => (best !== undefined && best.freeIps >= one.freeIps ? best : one),
    undefined,
  );
}

function requestText({ ip, ips = [], subnetIds = [] }: ClaimRequest): string {
  return [ip, ...ips.slice(0, 3), ...subnetIds.slice(0, 3)].filter((part) => part !== undefined).join(', ');
}

/** Returns why a claim waits. The reason is reported on the claim, not on the node. */
function waiting(message: string, afterMs = RECHECK_MS): Blocked {
  return { kind: 'blocked', reason: 'ClaimWaits', message, afterMs };
}
