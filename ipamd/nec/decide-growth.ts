import { IPS_PER_CALL } from '../../cloud/batches.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { chooseSubnet, LEAST_FREE_IPS } from './choose-subnet.ts';
import { eniPlacesOf, placesLeft } from './eni-places.ts';
import type { SubnetChoice } from './node-view.ts';
import { isReservedSubnet } from './reserved-subnets.ts';
import { begin, CALL_UNDER_WAY, type Hold, holdIfBlocked, LOOK_AGAIN_MS, type Scene, type Step } from './scene.ts';
import { isCappedForPods, isUsable, roomOf } from './supply.ts';
import { ipv4CountOf } from './with-enis.ts';

/**
 * Decides the call that brings the node closer to its demand: attach an ENI, assign addresses, or create an ENI. Takes
 * ids.
 */
export function decideGrowth(scene: Scene): Step {
  const { have, coming, want } = scene.supply;
  const attach = decideAttach(scene);
  if (attach?.kind === 'begin') return attach;
  const need = want - have - coming;
  if (need <= 0) {
    if (attach !== undefined) return attach;
    return isCappedForPods(scene.view, scene.supply) ? nodeIpLimit(scene) : undefined;
  }
  const free = chooseEni(scene);
  if (free !== undefined) {
    const { eni, room } = free;
    const freeIps = scene.view.subnets.find((subnet) => subnet.subnetId === eni.subnetID)?.freeIps ?? room;
    const ipCount = Math.min(IPS_PER_CALL, need, room, freeIps);
    return begin(scene, 'AssignPrivateIpAddresses', { eniID: eni.eniID, ipCount });
  }
  return decideCreate(scene, need) ?? attach;
}

/** Attaches an ENI that was created and is on no instance yet. */
function decideAttach(scene: Scene): Step {
  const eni = (scene.status.eniInfos ?? []).find((one) => isToAttach(scene, one));
  if (eni === undefined) return undefined;
  const { instance } = scene.view;
  if (instance === undefined || !instance.isRunning) return instanceHold(scene);
  if (scene.isInstanceBusy) return CALL_UNDER_WAY;
  return (
    placeHold(scene) ??
    holdIfBlocked(scene, [`call/AttachNetworkInterface/${eni.eniID}`], 'CloudRefused', `cannot attach ${eni.eniID}`) ??
    begin(scene, 'AttachNetworkInterface', { eniID: eni.eniID, instanceID: instance.instanceId })
  );
}

function isToAttach({ busy, view }: Scene, eni: NodeEniInfo): boolean {
  if (eni.state !== 'Attaching' || !isUsable(eni) || busy.has(eni.eniID)) return false;
  return !view.stuck.has(eni.eniID) && view.leaving === 'no';
}

/** Creates a new ENI with as many addresses as one call can bring. */
function decideCreate(scene: Scene, need: number): Step {
  const { view, supply } = scene;
  const later = roomLater(scene);
  if (need <= later) return CALL_UNDER_WAY;
  const { instance } = view;
  if (instance === undefined || !instance.isRunning) return instanceHold(scene);
  if (scene.isInstanceBusy) return CALL_UNDER_WAY;
  const hold = limitHold(scene) ?? placeHold(scene) ?? quotaHold(scene);
  if (hold !== undefined) return hold;
  const subnet = chooseSubnet(view);
  if (subnet === undefined) return subnetHold(scene);
  const ipCount = Math.min(IPS_PER_CALL, need - later, supply.perEni, subnet.freeIps - 1);
  const { vpcId, instanceId, instanceType, zone } = instance;
  const status = { ...scene.status, instanceID: instanceId, instanceType, zone, vpcID: vpcId };
  const groups = view.securityGroups ?? [];
  const securityGroups = groups.length === 0 ? {} : { securityGroups: groups };
  return begin(scene, 'CreateNetworkInterface', { subnetID: subnet.subnetId, ipCount, ...securityGroups }, status);
}

/** Returns why a node whose instance is unknown or not running gets nothing. */
export function instanceHold({ view }: Scene): Hold {
  const { instance } = view;
  if (instance === undefined) {
    const message = 'the instance of this node is not known to the cloud';
    return { kind: 'hold', reason: 'InstanceUnknown', message, afterMs: LOOK_AGAIN_MS };
  }
  const message = `instance ${instance.instanceId} does not run`;
  return { kind: 'hold', reason: 'InstanceNotRunning', message, afterMs: LOOK_AGAIN_MS };
}

/** Blocks when the node has as many ENIs as it may have, or all ENI slots of the instance are used. */
function limitHold(scene: Scene): Hold | undefined {
  const { view, status, supply } = scene;
  if (placesLeft(view, status, supply) > 0) return undefined;
  const { serving, places } = eniPlacesOf(view, status);
  if (serving < supply.mostEnis) {
    const message = `all ${places} places for ENIs are taken, some by ENIs that are being given back`;
    return { kind: 'hold', reason: 'InstanceENILimit', message, afterMs: LOOK_AGAIN_MS };
  }
  return fullHold(scene);
}

/** Returns why no existing ENI accepts more addresses: the reason of a stuck ENI, of the cloud or of the subnets. */
function fullHold(scene: Scene): Hold {
  const { view, status } = scene;
  const usable = (status.eniInfos ?? []).filter((eni) => isUsable(eni) && eni.state !== 'Detaching');
  const stuck = usable.find((eni) => view.stuck.has(eni.eniID));
  if (stuck !== undefined) {
    const message = `ENI ${stuck.eniID} does not get ready`;
    return { kind: 'hold', reason: 'CloudRefused', message, afterMs: LOOK_AGAIN_MS };
  }
  for (const { eniID, subnetID = '' } of usable) {
    const keys = [`eni-ips/${eniID}`, `call/AssignPrivateIpAddresses/${eniID}`];
    const refused = holdIfBlocked(scene, keys, 'CloudRefused', `ENI ${eniID} takes no more addresses`);
    const subnet = view.subnets.find((one) => one.subnetId === subnetID);
    if (refused !== undefined) return refused;
    if (subnet !== undefined && isFull(subnet)) return exhausted(scene, [subnetID]);
  }
  return nodeIpLimit(scene);
}

function nodeIpLimit({ supply }: Scene): Hold {
  const message = `${supply.demand} addresses are wanted, the node may have ${supply.perEni} on each of ${supply.mostEnis} ENIs`;
  return { kind: 'hold', reason: 'NodeIPLimit', message, afterMs: 600_000 };
}

/** Blocks when the cloud refuses more ENIs on the instance. */
export function placeHold(scene: Scene): Hold | undefined {
  return holdIfBlocked(scene, ['instance-enis'], 'InstanceENILimit', 'the instance takes no more ENIs');
}

/** Blocks when the quota of the VPC is used up, or the cloud refuses creations. */
export function quotaHold(scene: Scene): Hold | undefined {
  return (
    holdIfBlocked(scene, ['vpc-enis'], 'ENILimit', 'the VPC takes no more ENIs') ??
    holdIfBlocked(scene, ['call/CreateNetworkInterface'], 'CloudRefused', 'cannot create an ENI')
  );
}

/** Returns why no subnet can have the new ENI. */
export function subnetHold(scene: Scene): Hold {
  const { subnets } = scene.view;
  if (subnets.length === 0) {
    const message = `no subnet is configured in zone ${scene.view.instance?.zone ?? 'of the node'}`;
    return { kind: 'hold', reason: 'NoSubnetInZone', message, afterMs: LOOK_AGAIN_MS };
  }
  const full = subnets.filter(isFull).map((subnet) => subnet.subnetId);
  const refusing = subnets.map((subnet) => `subnet/${subnet.subnetId}`);
  const hold = holdIfBlocked(scene, refusing, 'CloudRefused', 'no ENI can be made in any subnet');
  // A refusal for this node alone is the more useful reason than other subnets that are full.
  return hold ?? exhausted(scene, full);
}

function isFull({ isBlocked, freeIps }: SubnetChoice): boolean {
  return isBlocked || freeIps < LEAST_FREE_IPS;
}

function exhausted({ view }: Scene, subnetIds: readonly string[]): Hold {
  const refusal = subnetIds.map((id) => view.refusals?.get(`subnet/${id}`)).find((one) => one !== undefined);
  const said = refusal === undefined || refusal.message === '' ? '' : `: ${refusal.message}`;
  const message = `no free addresses in ${subnetIds.join(', ')}${said}`;
  return { kind: 'hold', reason: 'SubnetExhausted', message, afterMs: refusal?.afterMs ?? LOOK_AGAIN_MS };
}

/** An ENI that new addresses can be assigned to, and how many more it can have. */
type EniRoom = { readonly eni: NodeEniInfo; readonly room: number };

/** Selects the ENI for new addresses: the fullest one that has free capacity and no call in flight. */
function chooseEni(scene: Scene): EniRoom | undefined {
  const free = roomsOf(scene).filter(({ eni }) => eni.state === 'Attached' && !scene.busy.has(eni.eniID));
  return free.reduce<EniRoom | undefined>(
    (best, one) => (best !== undefined && ipv4CountOf(best.eni) >= ipv4CountOf(one.eni) ? best : one),
    undefined,
  );
}

/** Counts the free capacity on ENIs that cannot get addresses now but can soon. */
function roomLater(scene: Scene): number {
  const isSoon = ({ eni }: EniRoom) =>
    (eni.state === 'Attaching' || scene.busy.has(eni.eniID)) && !scene.view.stuck.has(eni.eniID);
  return roomsOf(scene)
    .filter(isSoon)
    .reduce((sum, { room }) => sum + room, 0);
}

function roomsOf({ view, status, supply, claims }: Scene): readonly EniRoom[] {
  const full = new Set(
    view.subnets.filter((subnet) => subnet.isBlocked || subnet.freeIps < 1).map((one) => one.subnetId),
  );
  return (status.eniInfos ?? []).flatMap((eni) => {
    const { eniID, subnetID = '' } = eni;
    const keys = [`eni-ips/${eniID}`, `subnet/${subnetID}`, `call/AssignPrivateIpAddresses/${eniID}`];
    const isOurs = isUsable(eni) && !isReservedSubnet(view, subnetID);
    const isOpen = isOurs && eni.state !== 'Detaching' && !keys.some((key) => view.blocked.has(key));
    const room =
      isOpen && !full.has(subnetID) ? roomOf(eni, status, supply.perEni) - (claims.reserved.get(eniID) ?? 0) : 0;
    return room > 0 ? [{ eni, room }] : [];
  });
}
