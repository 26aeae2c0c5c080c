import { isInCidr } from '../../crd/ip-text.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { fitsSubnet, wantedIpsOf } from './claim-places.ts';
import type { ClaimWish } from './claim-wish.ts';
import { instanceHold, placeHold, quotaHold } from './decide-growth.ts';
import type { Ids, Leader } from './decision.ts';
import { eniPlacesOf, placesLeft } from './eni-places.ts';
import type { NodeView, SubnetChoice } from './node-view.ts';
import { offersOf } from './offers.ts';
import { begin, CALL_UNDER_WAY, type Hold, LOOK_AGAIN_MS, type Scene, type Step, sceneOf } from './scene.ts';
import { takenIps } from './seen-eni.ts';
import { isUsable } from './supply.ts';

/** The next call for static addresses, and why the others wait: by key of the claim. */
type ClaimSteps = { readonly step: Step; readonly waits: ReadonlyMap<string, string> };

/**
 * Decides how a static address comes to a Pod on this node: assigned by this address, or as any address, on a suitable
 * ENI; moved from another node's ENI whose agent has released it; or first a new ENI. A claim that is blocked does not
 * delay others. Takes ids.
 */
export function decideClaims(scene: Scene): ClaimSteps {
  const waits = new Map<string, string>();
  let first: Hold | undefined;
  for (const wish of scene.claims.open) {
    const step = fulfil(scene, wish);
    if (step?.kind === 'begin') return { step: { ...step, priority: 'pod' }, waits };
    if (step === undefined) continue;
    waits.set(wish.key, step.message);
    if (first === undefined || step.afterMs < first.afterMs) first = step;
  }
  return { step: first, waits };
}

/** Ids of an evaluation that starts no call. */
const NO_IDS: Ids = { next: () => 'looked', now: () => '1970-01-01T00:00:00Z' };

/** Tells why claims whose Pods are on the node wait for their address: by key. */
export function claimWaitsOf(view: NodeView, leader: Leader): ReadonlyMap<string, string> {
  return decideClaims(sceneOf(view, view.status, leader, NO_IDS)).waits;
}

function fulfil(scene: Scene, wish: ClaimWish): Step {
  const { view } = scene;
  if (view.claimCallsElsewhere?.has(wish.key) === true)
    return waiting('another node has a call for it under way', OTHERS_LOOK_MS);
  const refused = refusedKey(view, wish);
  if (refused !== undefined) {
    const refusal = view.refusals?.get(refused);
    return waiting(refusal?.message ?? 'the cloud refused', refusal?.afterMs);
  }
  const eni = scene.claims.eniOf.get(wish.key);
  if (eni === undefined) return makeEni(scene, wish);
  if (eni.state !== 'Attached') return waiting(`ENI ${eni.eniID} is being attached`);
  if (scene.busy.has(eni.eniID)) return waiting(CALL_UNDER_WAY.message, CALL_UNDER_WAY.afterMs);
  return wish.source === undefined ? assign(scene, wish, eni) : move(scene, wish, eni);
}

/**
 * Finds the open breaker that blocks a request. A refusal of one address blocks neither another address nor the claim.
 */
function refusedKey({ blocked }: NodeView, wish: ClaimWish): string | undefined {
  const key = `claim/${wish.key}`;
  if (blocked.has(key)) return key;
  const wanted = (wantedIpsOf(wish) ?? []).map((ip) => `${key}/${ip}`);
  return wanted.every((one) => blocked.has(one)) ? wanted[0] : undefined;
}

/** Assigns an address that is on no ENI. */
function assign(scene: Scene, wish: ClaimWish, eni: NodeEniInfo): Step {
  const { eniID, subnetCIDR } = eni;
  const wanted = wantedIpsOf(wish);
  if (wanted === undefined) {
    const subnet = scene.view.subnets.find(({ subnetId }) => subnetId === eni.subnetID);
    if (subnet !== undefined && (subnet.isBlocked || subnet.freeIps < 1))
      return waiting(`no free addresses in ${subnet.subnetId}`);
    return begin(scene, 'AssignPrivateIpAddresses', { eniID, ipCount: 1, claim: wish.key });
  }
  const taken = takenIps(scene.status);
  for (const ip of wanted) if (scene.view.blocked.has(`claim/${wish.key}/${ip}`)) taken.add(ip);
  for (const intent of scene.status.intents ?? []) for (const ip of intent.ips ?? []) taken.add(ip);
  const fitting = wanted.filter((ip) => subnetCIDR !== undefined && isInCidr(ip, subnetCIDR));
  const ip = fitting.find((one) => !taken.has(one));
  if (ip === undefined) return waiting(inUseWords(scene, fitting), CALL_UNDER_WAY.afterMs);
  return begin(scene, 'AssignPrivateIpAddresses', { eniID, ips: [ip], claim: wish.key });
}

function inUseWords({ status }: Scene, ips: readonly string[]): string {
  const own = (status.eniInfos ?? []).find(({ primaryIP = '' }) => ips.includes(primaryIP));
  if (own === undefined) return `${ips.join(', ')} is in use on this node`;
  const rest = own.draining === true ? 'which is given back for it' : 'which serves Pods';
  return `${own.primaryIP} is the own address of ENI ${own.eniID} of this node, ${rest}`;
}

/** Moves an address from another node's ENI, once that node's agent has released it. */
function move(scene: Scene, { key, ip, source }: ClaimWish, { eniID }: NodeEniInfo): Step {
  if (source === undefined || ip === undefined) return waiting('it is not known which address is to be moved');
  const { nodeName, eniId, isAttached, isReleased } = source;
  if (!isReleased) return waiting(`${ip} is in use on node ${nodeName}`);
  if (!isAttached) return waiting(`${ip} is being taken off ENI ${eniId} of node ${nodeName}`);
  return begin(scene, 'MigratePrivateIpAddress', { eniID: eniId, targetENIID: eniID, ips: [ip], claim: key });
}

/** Creates an ENI in a suitable subnet when no suitable ENI has free capacity. */
function makeEni(scene: Scene, wish: ClaimWish): Step {
  const choices = [...scene.view.subnets, ...(scene.view.claimSubnets ?? [])];
  const fitting = choices.filter(({ subnetId, cidr }) => fitsSubnet(scene.view, wish, subnetId, cidr));
  if (fitting.length === 0) return waiting(`no subnet of this node has the address: ${wordsOf(wish)}`);
  if (comesFree(scene, wish))
    return waiting('an address of the pool is being given back there', CALL_UNDER_WAY.afterMs);
  const { instance } = scene.view;
  const hold =
    instance?.isRunning === true ? (limitHold(scene) ?? placeHold(scene) ?? quotaHold(scene)) : instanceHold(scene);
  if (instance === undefined || hold !== undefined) return waiting(hold?.message ?? '', hold?.afterMs);
  if (scene.isInstanceBusy)
    return waiting('another ENI of this node is being made or attached', CALL_UNDER_WAY.afterMs);
  const subnet = roomiest(scene.view, fitting);
  if (subnet === undefined)
    return waiting(`no free addresses in ${fitting.map(({ subnetId }) => subnetId).join(', ')}`);
  // An ENI for a particular address is created without secondary addresses.
  const born = wantedIpsOf(wish) === undefined ? { ipCount: 1 } : {};
  const { vpcId, instanceId, instanceType, zone } = instance;
  const status = { ...scene.status, instanceID: instanceId, instanceType, zone, vpcID: vpcId };
  const groups = scene.view.securityGroups ?? [];
  const securityGroups = groups.length === 0 ? {} : { securityGroups: groups };
  const fields = { subnetID: subnet.subnetId, ...born, ...securityGroups, claim: wish.key };
  return begin(scene, 'CreateNetworkInterface', fields, status);
}

/**
 * Tells whether a suitable ENI has addresses that the pool does not need, so that it has free capacity once they are
 * unassigned.
 */
function comesFree({ view, status, supply }: Scene, wish: ClaimWish): boolean {
  const offers = offersOf({ ...view, status });
  const fitting = (status.eniInfos ?? []).filter(({ eniID, subnetID, subnetCIDR }) => {
    const isStuck = view.stuck.has(eniID) || view.blocked.has(`call/UnassignPrivateIpAddresses/${eniID}`);
    return !isStuck && fitsSubnet(view, wish, subnetID, subnetCIDR);
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
 * releases addresses or Pods are deleted.
 */
function limitHold({ view, status, supply }: Scene): Hold | undefined {
  if (placesLeft(view, status, supply) > 0) return undefined;
  const { serving } = eniPlacesOf(view, status);
  return waiting(
    `none of the ${serving} ENIs of this node that may have it has room, and there may be no other`,
    ROOM_LOOK_MS,
  );
}

const OTHERS_LOOK_MS = 2_000;
/** The agent reads the number of static addresses and offers spare ones. */
const ROOM_LOOK_MS = 10_000;

/** Selects the subnet with the most free addresses. A static address uses none of them; the ENI itself uses one. */
function roomiest({ blocked }: NodeView, subnets: readonly SubnetChoice[]): SubnetChoice | undefined {
  const open = subnets.filter(
    ({ subnetId, isBlocked, freeIps }) => !isBlocked && freeIps > 1 && !blocked.has(`subnet/${subnetId}`),
  );
  return open.reduce<SubnetChoice | undefined>(
    (best, one) => (best !== undefined && best.freeIps >= one.freeIps ? best : one),
    undefined,
  );
}

function wordsOf({ ip, ips = [], subnetIds = [] }: ClaimWish): string {
  return [ip, ...ips.slice(0, 3), ...subnetIds.slice(0, 3)].filter((word) => word !== undefined).join(', ');
}

/** Returns why a claim waits. The reason is reported on the claim, not on the node. */
function waiting(message: string, afterMs = LOOK_AGAIN_MS): Hold {
  return { kind: 'hold', reason: 'ClaimWaits', message, afterMs };
}
