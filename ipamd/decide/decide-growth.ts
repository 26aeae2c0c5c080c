import { IPS_PER_CALL } from '../../cloud/batches.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { renderScaleError } from '../../crd/scale-error.ts';
import { freeSlotsOf, isCappedForPods, isUsable } from './address-counts.ts';
import { chooseSubnet, MIN_FREE_IPS } from './choose-subnet.ts';
import type { Blocked } from './decision.ts';
import {
  beginCall,
  CALL_IN_FLIGHT,
  checkBreakers,
  type DecisionContext,
  RECHECK_MS,
  requestIdOf,
  type Step,
} from './decision-context.ts';
import { eniPlacesOf, freeEniSlots } from './eni-slots.ts';
import type { SubnetChoice } from './node-view.ts';
import { isReservedEni } from './reserved-subnets.ts';
import { ipv4CountOf } from './with-enis.ts';

/**
 * Decides the call that brings the node closer to its demand: attach an ENI, assign addresses, or create an ENI. Takes
 * ids.
 */
export function decideGrowth(context: DecisionContext): Step {
  const { have, coming, want } = context.supply;
  const attach = decideAttach(context);
  if (attach?.kind === 'begin') return attach;
  const need = want - have - coming;
  if (need <= 0) {
    if (attach !== undefined) return attach;
    return isCappedForPods(context.view, context.supply) ? blockedByIpLimit(context) : undefined;
  }
  const free = chooseEni(context);
  if (free !== undefined) {
    const { eni, freeSlots } = free;
    const freeIps = context.view.subnets.find((subnet) => subnet.subnetId === eni.subnetID)?.freeIps ?? freeSlots;
    const ipCount = Math.min(IPS_PER_CALL, need, freeSlots, freeIps);
    return beginCall(context, 'AssignPrivateIpAddresses', { eniID: eni.eniID, ipCount });
  }
  return decideCreate(context, need) ?? attach;
}

/** Attaches an ENI that was created and is on no instance yet. */
function decideAttach(context: DecisionContext): Step {
  const eni = (context.status.eniInfos ?? []).find((one) => isToAttach(context, one));
  if (eni === undefined) return undefined;
  const { instance } = context.view;
  if (instance === undefined || !instance.isRunning) return blockedByInstance(context);
  if (context.isInstanceBusy) return CALL_IN_FLIGHT;
  return (
    blockedByCloudLimit(context) ??
    checkBreakers(
      context,
      [`call/AttachNetworkInterface/${eni.eniID}`],
      'CloudRefused',
      `cannot attach ${eni.eniID}`,
    ) ??
    beginCall(context, 'AttachNetworkInterface', { eniID: eni.eniID, instanceID: instance.instanceId })
  );
}

function isToAttach({ busy, view }: DecisionContext, eni: NodeEniInfo): boolean {
  if (eni.state !== 'Attaching' || !isUsable(eni) || busy.has(eni.eniID)) return false;
  return !view.stuck.has(eni.eniID) && view.leaving === 'no';
}

/** Creates a new ENI with as many addresses as one call can bring. */
function decideCreate(context: DecisionContext, need: number): Step {
  const { view, supply } = context;
  const later = freeSlotsLater(context);
  if (need <= later) return CALL_IN_FLIGHT;
  const { instance } = view;
  if (instance === undefined || !instance.isRunning) return blockedByInstance(context);
  if (context.isInstanceBusy) return CALL_IN_FLIGHT;
  const blocked = blockedByLimit(context) ?? blockedByCloudLimit(context) ?? blockedByQuota(context);
  if (blocked !== undefined) return blocked;
  const subnet = chooseSubnet(view);
  if (subnet === undefined) return blockedBySubnets(context);
  const ipCount = Math.min(IPS_PER_CALL, need - later, supply.perEni, subnet.freeIps - 1);
  const { vpcId, instanceId, instanceType, zone } = instance;
  const status = { ...context.status, instanceID: instanceId, instanceType, zone, vpcID: vpcId };
  const groups = view.securityGroups ?? [];
  const securityGroups = groups.length === 0 ? {} : { securityGroups: groups };
  return beginCall(
    context,
    'CreateNetworkInterface',
    { subnetID: subnet.subnetId, ipCount, ...securityGroups },
    status,
  );
}

/** Returns why a node whose instance is unknown or not running gets nothing. */
export function blockedByInstance({ view }: DecisionContext): Blocked {
  const { instance } = view;
  if (instance === undefined) {
    const message = 'the instance of this node is not known to the cloud';
    return { kind: 'blocked', reason: 'InstanceUnknown', message, afterMs: RECHECK_MS };
  }
  const message = `instance ${instance.instanceId} does not run`;
  return { kind: 'blocked', reason: 'InstanceNotRunning', message, afterMs: RECHECK_MS };
}

/** Blocks when the node has as many ENIs as it may have, or all ENI slots of the instance are used. */
function blockedByLimit(context: DecisionContext): Blocked | undefined {
  const { view, status, supply } = context;
  if (freeEniSlots(view, status) > 0) return undefined;
  const { serving, standard: total = 0 } = eniPlacesOf(view, status);
  if (serving < supply.maxEnis) {
    const message = `all ${total} ENI slots of the instance are used, some by ENIs that are being released`;
    return { kind: 'blocked', reason: 'InstanceENILimit', message, afterMs: RECHECK_MS };
  }
  return blockedByFullEnis(context);
}

/** Returns why no existing ENI accepts more addresses: the reason of a stuck ENI, of the cloud or of the subnets. */
function blockedByFullEnis(context: DecisionContext): Blocked {
  const { view, status } = context;
  const usable = (status.eniInfos ?? []).filter((eni) => isUsable(eni) && eni.state !== 'Detaching');
  const stuck = usable.find((eni) => view.stuck.has(eni.eniID));
  if (stuck !== undefined) {
    const message = `ENI ${stuck.eniID} does not become ready`;
    return { kind: 'blocked', reason: 'CloudRefused', message, afterMs: RECHECK_MS };
  }
  for (const { eniID, subnetID = '' } of usable) {
    const keys = [`eni-ips/${eniID}`, `call/AssignPrivateIpAddresses/${eniID}`];
    const refused = checkBreakers(context, keys, 'CloudRefused', `ENI ${eniID} takes no more addresses`);
    const subnet = view.subnets.find((one) => one.subnetId === subnetID);
    if (refused !== undefined) return refused;
    if (subnet !== undefined && isFull(subnet)) return blockedByFullSubnets(context, [subnetID]);
  }
  return blockedByIpLimit(context);
}

function blockedByIpLimit({ supply }: DecisionContext): Blocked {
  const message = `${supply.demand} addresses are requested, the node may have ${supply.perEni} on each of ${supply.maxEnis} ENIs`;
  return { kind: 'blocked', reason: 'NodeIPLimit', message, afterMs: 600_000 };
}

/** Blocks when the cloud refuses more ENIs on the instance. */
export function blockedByCloudLimit(context: DecisionContext): Blocked | undefined {
  return checkBreakers(context, ['instance-enis'], 'InstanceENILimit', 'the instance takes no more ENIs');
}

/** Blocks when the quota of the VPC is used up, or the cloud refuses creations. */
export function blockedByQuota(context: DecisionContext): Blocked | undefined {
  return (
    checkBreakers(context, ['vpc-enis'], 'ENILimit', 'the VPC takes no more ENIs') ??
    checkBreakers(context, ['call/CreateNetworkInterface'], 'CloudRefused', 'cannot create an ENI')
  );
}

/** Returns why no subnet can have the new ENI. */
export function blockedBySubnets(context: DecisionContext): Blocked {
  const { subnets } = context.view;
  if (subnets.length === 0) {
    const message = `no subnet is configured in zone ${context.view.instance?.zone ?? 'of the node'}${scaleErrorOf(context)}`;
    return { kind: 'blocked', reason: 'NoSubnetInZone', message, afterMs: RECHECK_MS };
  }
  const full = subnets.filter(isFull).map((subnet) => subnet.subnetId);
  const refusing = subnets.map((subnet) => `subnet/${subnet.subnetId}`);
  const blocked = checkBreakers(context, refusing, 'CloudRefused', 'no ENI can be created in any subnet');
  // A refusal for this node alone is the more useful reason than other subnets that are full.
  return blocked ?? blockedByFullSubnets(context, full);
}

/** The product's answer for a node that has no address yet: its zone has none for it; '' for any other node. */
function scaleErrorOf({ view, status }: DecisionContext): string {
  const hasEni = (status.eniInfos ?? []).some(({ mode }) => mode !== 'direct-eni');
  return hasEni || view.instance === undefined ? '' : `: ${renderScaleError(view.instance.zone, 1)}`;
}

function isFull({ isBlocked, freeIps }: SubnetChoice): boolean {
  return isBlocked || freeIps < MIN_FREE_IPS;
}

function blockedByFullSubnets(context: DecisionContext, subnetIds: readonly string[]): Blocked {
  const { view } = context;
  const refusal = subnetIds.map((id) => view.refusals?.get(`subnet/${id}`)).find((one) => one !== undefined);
  const detail = refusal === undefined || refusal.message === '' ? '' : `: ${refusal.message}`;
  const message = `no free addresses in ${subnetIds.join(', ')}${detail}${scaleErrorOf(context)}`;
  const afterMs = refusal?.afterMs ?? RECHECK_MS;
  return { kind: 'blocked', reason: 'SubnetExhausted', message, ...requestIdOf(refusal), afterMs };
}

/** An ENI that new addresses can be assigned to, and how many more it can have. */
type EniCapacity = { readonly eni: NodeEniInfo; readonly freeSlots: number };

/** Selects the ENI for new addresses: the fullest one that has free capacity and no call in flight. */
function chooseEni(context: DecisionContext): EniCapacity | undefined {
  const free = eniCapacitiesOf(context).filter(({ eni }) => eni.state === 'Attached' && !context.busy.has(eni.eniID));
  return free.reduce<EniCapacity | undefined>(
    (best, one) => (best !== undefined && ipv4CountOf(best.eni) >= ipv4CountOf(one.eni) ? best : one),
    undefined,
  );
}

/** Counts the free capacity on ENIs that cannot get addresses now but can soon. */
function freeSlotsLater(context: DecisionContext): number {
  const isSoon = ({ eni }: EniCapacity) =>
    (eni.state === 'Attaching' || context.busy.has(eni.eniID)) && !context.view.stuck.has(eni.eniID);
  return eniCapacitiesOf(context)
    .filter(isSoon)
    .reduce((sum, { freeSlots }) => sum + freeSlots, 0);
}

function eniCapacitiesOf({ view, status, supply, claims }: DecisionContext): readonly EniCapacity[] {
  const full = new Set(
    view.subnets.filter((subnet) => subnet.isBlocked || subnet.freeIps < 1).map((one) => one.subnetId),
  );
  return (status.eniInfos ?? []).flatMap((eni) => {
    const { eniID, subnetID = '' } = eni;
    const keys = [`eni-ips/${eniID}`, `subnet/${subnetID}`, `call/AssignPrivateIpAddresses/${eniID}`];
    const isOurs = isUsable(eni) && !isReservedEni(view, eni);
    const isOpen = isOurs && eni.state !== 'Detaching' && !keys.some((key) => view.blocked.has(key));
    const freeSlots =
      isOpen && !full.has(subnetID) ? freeSlotsOf(eni, status, supply.perEni) - (claims.reserved.get(eniID) ?? 0) : 0;
    return freeSlots > 0 ? [{ eni, freeSlots }] : [];
  });
}
