import { isInCidr } from '../../crd/ip-text.ts';
import type { NodeEniAddress, NodeEniConfigStatus, NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { claimKeyOf } from './claim-marks.ts';
import type { ClaimRequest } from './claim-request.ts';
import { eniPlacesOf, isUsable } from './count-slots.ts';
import type { Answer, Blocked, PlannedCall } from './decision.ts';
import { CALL_IN_FLIGHT, type DecisionContext, planInTurn, RECHECK_MS, slotsOf } from './decision-context.ts';
import { KINDS } from './eni-kinds.ts';
import type { NodeView } from './node-view.ts';
import { usedIps } from './observed-eni.ts';
import { offersOf } from './offers.ts';
import { acceptableIpsOf, fitsSubnet } from './place-claims.ts';
import { planCreation } from './plan-creation.ts';

/**
 * Plans how a static address comes to a Pod on this node: assigned by this address, or as any address, on a suitable
 * ENI; moved from another node's ENI whose agent has released it; or first a new ENI. A claim that is blocked does not
 * delay others.
 */
export function planClaims(context: DecisionContext): readonly Answer[] {
  return planInTurn(
    context.claims.open.map((request) => () => [{ ...answerRequest(context, request), claim: request.key }]),
  );
}

/**
 * Waits for calls of other nodes: until they have ended, nothing is changed for their claims here. No write tells this
 * node that they have ended.
 */
export function planOthersCalls({ view }: DecisionContext): readonly Answer[] {
  const requests = [...(view.claims?.values() ?? [])];
  const waiter = requests.find(({ key, goal }) => goal !== 'keep' && view.claimCallsElsewhere?.has(key) === true);
  return waiter === undefined
    ? []
    : [waiting(`another node has a call for ${waiter.key} under way`, OTHERS_RECHECK_MS)];
}

function answerRequest(context: DecisionContext, request: ClaimRequest): Answer {
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
  return request.source === undefined ? assign(context, request, eni) : migrate(request, eni);
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
function assign(context: DecisionContext, request: ClaimRequest, eni: NodeEniInfo): Answer {
  const { eniID, subnetCIDR } = eni;
  const acceptable = acceptableIpsOf(request);
  if (acceptable === undefined) {
    const subnet = context.view.subnets.find(({ subnetId }) => subnetId === eni.subnetID);
    if (subnet !== undefined && (subnet.isBlocked || subnet.freeIps < 1))
      return waiting(`no free addresses in ${subnet.subnetId}`);
    return call('AssignPrivateIpAddresses', { eniID, ipCount: 1, claim: request.key });
  }
  const taken = usedIps(context.status);
  for (const ip of acceptable) if (context.view.blocked.has(`claim/${request.key}/${ip}`)) taken.add(ip);
  for (const intent of context.status.intents ?? []) for (const ip of intent.ips ?? []) taken.add(ip);
  const fitting = acceptable.filter((ip) => subnetCIDR !== undefined && isInCidr(ip, subnetCIDR));
  const ip = fitting.find((one) => !taken.has(one));
  if (ip === undefined) return waiting(inUseMessage(context, fitting), CALL_IN_FLIGHT.afterMs);
  return call('AssignPrivateIpAddresses', { eniID, ips: [ip], claim: request.key });
}

function inUseMessage({ status }: DecisionContext, ips: readonly string[]): string {
  const ownEni = (status.eniInfos ?? []).find(({ primaryIP = '' }) => ips.includes(primaryIP));
  if (ownEni === undefined) return `${ips.join(', ')} is in use on this node`;
  const rest = ownEni.draining === true ? 'which is being released for it' : 'which serves Pods';
  return `${ownEni.primaryIP} is the primary address of ENI ${ownEni.eniID} of this node, ${rest}`;
}

/** Moves an address from another node's ENI, once that node's agent has released it. */
function migrate({ key, ip, source }: ClaimRequest, { eniID }: NodeEniInfo): Answer {
  if (source === undefined || ip === undefined) return waiting('it is not known which address is to be moved');
  const { nodeName, eniId, isAttached, isReleased } = source;
  if (!isReleased) return waiting(`${ip} is in use on node ${nodeName}`);
  if (!isAttached) return waiting(`${ip} is being unassigned from ENI ${eniId} of node ${nodeName}`);
  return call('MigratePrivateIpAddress', { eniID: eniId, targetENIID: eniID, ips: [ip], claim: key });
}

/** Creates an ENI in a suitable subnet when no suitable ENI has free capacity. */
function createEni(context: DecisionContext, request: ClaimRequest): Answer {
  const { view } = context;
  const choices = [...view.subnets, ...(view.claimSubnets ?? [])];
  const subnets = choices.filter(({ subnetId, cidr }) => fitsSubnet(view, request, subnetId, cidr));
  if (subnets.length === 0) return waiting(`no subnet of this node has the address: ${requestText(request)}`);
  if (willHaveFreeSlot(context, request))
    return waiting('an address of the pool is being released there', CALL_IN_FLIGHT.afterMs);
  const created = planCreation(context, KINDS.shared, {
    full: () => blockedByLimit(context, request),
    subnets,
    noSubnet: () => waiting(`no free addresses in ${subnets.map(({ subnetId }) => subnetId).join(', ')}`),
    // An ENI for a particular address is created without secondary addresses.
    ...(acceptableIpsOf(request) === undefined ? { ipCountIn: () => 1 } : {}),
    securityGroups: view.securityGroups,
    claim: request.key,
    priority: 'pod',
  });
  if (created.kind === 'call' || created.reason === 'NodeFull') return created;
  const isBusy = created === CALL_IN_FLIGHT;
  return waiting(isBusy ? 'another ENI of this node is being created or attached' : created.message, created.afterMs);
}

/**
 * Reports whether a suitable ENI has addresses that the pool does not need, so that it has free capacity once they are
 * unassigned.
 */
function willHaveFreeSlot(context: DecisionContext, request: ClaimRequest): boolean {
  const { view, status } = context;
  const { have, coming, want } = slotsOf(context, KINDS.shared);
  const offers = offersOf({ ...view, status });
  const fitting = (status.eniInfos ?? []).filter(({ eniID, subnetID, subnetCIDR }) => {
    const isStuck = view.stuck.has(eniID) || view.blocked.has(`call/UnassignPrivateIpAddresses/${eniID}`);
    return !isStuck && fitsSubnet(view, request, subnetID, subnetCIDR);
  });
  return fitting.filter(isUsable).some((eni) => {
    const pooled = (eni.addresses ?? []).filter(({ claim }) => claim === undefined);
    if (eni.state === 'Attaching') return pooled.length > 0 && have + coming > want;
    const isSurplus = have > want;
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
function blockedByLimit(context: DecisionContext, request: ClaimRequest): Blocked | undefined {
  const { view, status } = context;
  if (slotsOf(context, KINDS.shared).freeEnis > 0) return undefined;
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

function requestText({ ip, ips = [], subnetIds = [] }: ClaimRequest): string {
  return [ip, ...ips.slice(0, 3), ...subnetIds.slice(0, 3)].filter((part) => part !== undefined).join(', ');
}

/** Returns why a claim waits. The reason is reported on the claim, not on the node. */
function waiting(message: string, afterMs = RECHECK_MS): Blocked {
  return { kind: 'blocked', reason: 'ClaimWaits', message, afterMs };
}

/** A Pod waits for each of these calls. */
function call(action: PlannedCall['action'], fields: PlannedCall['fields']): PlannedCall {
  return { kind: 'call', action, fields, priority: 'pod' };
}
