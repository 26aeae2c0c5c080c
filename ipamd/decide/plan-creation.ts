import type { CallPriority } from '../../cloud/cloud.ts';
import { MODE_TAG } from '../../crd/cloud-tags.ts';
import { renderScaleError } from '../../crd/scale-error.ts';
import { eniPlacesOf, isUsable, type Slots } from './count-slots.ts';
import type { Blocked, PlannedCall } from './decision.ts';
import {
  CALL_IN_FLIGHT,
  checkBreakers,
  type DecisionContext,
  RECHECK_MS,
  requestIdOf,
  slotsOf,
} from './decision-context.ts';
import { type EniKind, KINDS, placesKeyOf } from './eni-kinds.ts';
import type { NodeView, SubnetChoice } from './node-view.ts';

/** A new ENI, for the pool or for a claim. */
type NewEni = {
  /** Why the node may have no further one; undefined when it may. */
  readonly full: () => Blocked | undefined;
  /** The suitable subnets, and why none of them can have it. */
  readonly subnets: readonly SubnetChoice[];
  readonly noSubnet: () => Blocked;
  /** How many addresses it gets at once; absent: none. */
  readonly ipCountIn?: (subnet: SubnetChoice) => number;
  readonly securityGroups: readonly string[] | undefined;
  /** Key of the claim that it is for; absent: the pool. */
  readonly claim?: string;
  readonly priority: CallPriority;
};

/** Plans the creation of an ENI in the suitable subnet with the most free addresses; among equals the first. */
export function planCreation(context: DecisionContext, kind: EniKind, eni: NewEni): PlannedCall | Blocked {
  const { view } = context;
  const blocked =
    blockedByInstance(view) ??
    eni.full() ??
    blockedByPlaces(view, kind) ??
    blockedByQuota(view) ??
    (context.isInstanceBusy ? CALL_IN_FLIGHT : undefined);
  if (blocked !== undefined) return blocked;
  const subnet = eni.subnets
    .filter(({ subnetId, isBlocked }) => !isBlocked && !view.blocked.has(`subnet/${subnetId}`))
    .filter(({ freeIps }) => freeIps >= kind.minFreeIps)
    .reduce<SubnetChoice | undefined>((best, one) => (best && best.freeIps >= one.freeIps ? best : one), undefined);
  if (subnet === undefined) return eni.noSubnet();
  const { securityGroups = [], claim, priority } = eni;
  const fields = {
    subnetID: subnet.subnetId,
    ...(eni.ipCountIn === undefined ? {} : { ipCount: eni.ipCountIn(subnet) }),
    ...(kind.mode === undefined ? {} : { tags: { [MODE_TAG.name]: kind.mode } }),
    ...(securityGroups.length === 0 ? {} : { securityGroups }),
    ...(claim === undefined ? {} : { claim }),
  };
  return { kind: 'call', action: 'CreateNetworkInterface', fields, priority };
}

/**
 * Returns why a node may have no further ENI of a kind; undefined when a place is free. With `isForClaim` a place that becomes
 * free soon is no comfort: the pool may get it.
 */
export function whyFull(context: DecisionContext, kind: EniKind, isForClaim = false): Blocked | undefined {
  const { view, status } = context;
  const slots = slotsOf(context, kind);
  if (slots.freeEnis > 0) return undefined;
  const { serving, standard = 0 } = eniPlacesOf(view, status);
  const here = kind.isShared ? serving : slots.have + slots.coming + slots.claimed - slots.awaited;
  if (here < slots.maxEnis && !isForClaim) {
    const total = kind.isShared ? standard : view.instance?.extensionEnis || standard;
    const ofKind = kind.isShared ? '' : ` for ${kind.noun}`;
    const message = `all ${total} ENI slots of the instance${ofKind} are used, some by ENIs that are being released`;
    return { kind: 'blocked', reason: 'InstanceENILimit', message, afterMs: RECHECK_MS };
  }
  return (kind.isShared ? whyNoEniTakesMore(context) : undefined) ?? whyNoMoreSlots(kind, slots);
}

/** Returns why the limits of a node allow no more slots of a kind. */
export function whyNoMoreSlots(kind: EniKind, slots: Slots): Blocked {
  const { demand, claimed, awaited, perEni, maxEnis, have, coming } = slots;
  if (kind.isShared) {
    const message = `${demand} addresses are requested, the node may have ${perEni} on each of ${maxEnis} ENIs`;
    return { kind: 'blocked', reason: 'NodeIPLimit', message, afterMs: 600_000 };
  }
  const demandText = `${demand + claimed} ${kind.noun} are requested, ${claimed} of them for claims`;
  const message = `${demandText}; the node may have ${maxEnis} beside its shared ones, and has ${have + coming + claimed - awaited}`;
  return { kind: 'blocked', reason: 'DirectENILimit', message, afterMs: RECHECK_MS };
}

/** Returns why no existing ENI accepts more addresses: the reason of a stuck ENI, of the cloud or of the subnets. */
function whyNoEniTakesMore(context: DecisionContext): Blocked | undefined {
  const { view, status } = context;
  const usable = (status.eniInfos ?? []).filter((eni) => isUsable(eni) && eni.state !== 'Detaching');
  const stuck = usable.find((eni) => view.stuck.has(eni.eniID));
  if (stuck !== undefined) {
    const message = `ENI ${stuck.eniID} does not become ready`;
    return { kind: 'blocked', reason: 'CloudRefused', message, afterMs: RECHECK_MS };
  }
  for (const { eniID, subnetID = '' } of usable) {
    const keys = [`eni-ips/${eniID}`, `call/AssignPrivateIpAddresses/${eniID}`];
    const refused = checkBreakers(view, keys, 'CloudRefused', `ENI ${eniID} takes no more addresses`);
    const subnet = view.subnets.find((one) => one.subnetId === subnetID);
    if (refused !== undefined) return refused;
    if (subnet !== undefined && isFull(subnet)) return blockedByFullSubnets(context, [subnetID]);
  }
  return undefined;
}

/** Blocks a node whose instance is unknown or not running. */
export function blockedByInstance({ instance }: NodeView): Blocked | undefined {
  if (instance === undefined) {
    const message = 'the instance of this node is not known to the cloud';
    return { kind: 'blocked', reason: 'InstanceUnknown', message, afterMs: RECHECK_MS };
  }
  if (instance.isRunning) return undefined;
  const message = `instance ${instance.instanceId} does not run`;
  return { kind: 'blocked', reason: 'InstanceNotRunning', message, afterMs: RECHECK_MS };
}

/** Blocks when the cloud refuses more ENIs on the places that those of the kind use. */
export function blockedByPlaces(view: NodeView, kind: EniKind): Blocked | undefined {
  const key = placesKeyOf(kind, view);
  const what = key === 'instance-enis' ? 'ENIs' : kind.noun;
  return checkBreakers(view, [key], 'InstanceENILimit', `the instance takes no more ${what}`);
}

/** Blocks when the quota of the VPC is used up, or the cloud refuses creations. */
function blockedByQuota(view: NodeView): Blocked | undefined {
  return (
    checkBreakers(view, ['vpc-enis'], 'ENILimit', 'the VPC takes no more ENIs') ??
    checkBreakers(view, ['call/CreateNetworkInterface'], 'CloudRefused', 'cannot create an ENI')
  );
}

/** Returns why none of the node's subnets can have a new ENI. */
export function blockedBySubnets(context: DecisionContext): Blocked {
  const { view } = context;
  const { subnets } = view;
  if (subnets.length === 0) {
    const message = `no subnet is configured in zone ${view.instance?.zone ?? 'of the node'}${scaleErrorOf(context)}`;
    return { kind: 'blocked', reason: 'NoSubnetInZone', message, afterMs: RECHECK_MS };
  }
  const full = subnets.filter(isFull).map((subnet) => subnet.subnetId);
  const refusing = subnets.map((subnet) => `subnet/${subnet.subnetId}`);
  const blocked = checkBreakers(view, refusing, 'CloudRefused', 'no ENI can be created in any subnet');
  // A refusal for this node alone is the more useful reason than other subnets that are full.
  return blocked ?? blockedByFullSubnets(context, full);
}

function isFull({ isBlocked, freeIps }: SubnetChoice): boolean {
  return isBlocked || freeIps < KINDS.shared.minFreeIps;
}

/** Returns that subnets have no free addresses, with what the cloud says of it. */
function blockedByFullSubnets(context: DecisionContext, subnetIds: readonly string[]): Blocked {
  const { view } = context;
  const refusal = subnetIds.map((id) => view.refusals?.get(`subnet/${id}`)).find((one) => one !== undefined);
  const detail = refusal === undefined || refusal.message === '' ? '' : `: ${refusal.message}`;
  const message = `no free addresses in ${subnetIds.join(', ')}${detail}${scaleErrorOf(context)}`;
  const afterMs = refusal?.afterMs ?? RECHECK_MS;
  return { kind: 'blocked', reason: 'SubnetExhausted', message, ...requestIdOf(refusal), afterMs };
}

/** The product's answer for a node that has no address yet: its zone has none for it; '' for any other node. */
function scaleErrorOf({ view, status }: DecisionContext): string {
  const hasEni = (status.eniInfos ?? []).some(({ mode }) => mode !== 'direct-eni');
  return hasEni || view.instance === undefined ? '' : `: ${renderScaleError(view.instance.zone, 1)}`;
}
