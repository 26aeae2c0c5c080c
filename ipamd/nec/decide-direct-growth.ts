import type { CallPriority } from '../../cloud/cloud.ts';
import type { Mutation } from '../../crd/intent.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { ClaimWish } from './claim-wish.ts';
import { isOtherZone, isWantedHere, keptEniOf, wantedGroupsOf, wishOf } from './decide-direct-marks.ts';
import { instanceHold, placeHold, quotaHold, subnetHold } from './decide-growth.ts';
import type { Ids, Intent, Leader } from './decision.ts';
import { MODE_TAG } from './direct-creation.ts';
import { awaitedWishes, type DirectSupply, directEnisOf, directSupplyOf, isFor } from './direct-supply.ts';
import type { NodeView, SubnetChoice } from './node-view.ts';
import { isSameData } from './same-data.ts';
import {
  begin,
  CALL_UNDER_WAY,
  type Hold,
  holdIfBlocked,
  LOOK_AGAIN_MS,
  type Scene,
  type Step,
  sceneOf,
} from './scene.ts';

/** Why the Pods of one claim wait; without a claim: why the pool waits. */
export type DirectHold = Hold & { readonly claim?: string };

/** The next call for exclusive ENIs, and why the rest waits. */
type DirectPlan = { readonly call?: DirectCall; readonly holds: readonly DirectHold[] };

/** A call that has no ids yet. */
type DirectCall = {
  readonly action: Mutation;
  readonly fields: Partial<Intent>;
  readonly priority: CallPriority;
};

/** Decides the call that brings the exclusive ENIs closer to what is requested. Takes ids. */
export function decideDirectGrowth(scene: Scene): Step {
  const { call, holds } = planDirectGrowth(scene);
  if (call === undefined) return holds.find(({ reason }) => reason !== 'CallUnderWay') ?? holds[0];
  const { action, fields, priority } = call;
  const step = begin(scene, action, fields);
  return step?.kind === 'begin' ? { ...step, priority } : step;
}

/**
 * Plans the next call for exclusive ENIs, in this order: security groups of ENIs that Pods wait for; attachment of ENIs
 * that are on no instance; new ENIs for static Pods; new ENIs for the pool.
 */
export function planDirectGrowth(scene: Scene): DirectPlan {
  const supply = directSupplyOf(scene.view, scene.status);
  const holds: DirectHold[] = [];
  const parts = [planGroups, planAttach, planForClaims, planForPool];
  for (const part of parts) {
    for (const one of part(scene, supply)) {
      if ('action' in one) return { call: one, holds };
      holds.push(one);
    }
  }
  return { holds };
}

type Planned = DirectCall | DirectHold;

/** Ids of an evaluation that starts no call. */
const NO_IDS: Ids = { next: () => 'looked', now: () => '1970-01-01T00:00:00Z' };

/** Tells why claims whose Pods are on the node wait for their exclusive ENI: by key. */
export function directWaitsOf(view: NodeView, leader: Leader): ReadonlyMap<string, string> {
  const { holds } = planDirectGrowth(sceneOf(view, view.status, leader, NO_IDS));
  return new Map(holds.flatMap(({ claim, message }) => (claim === undefined ? [] : [[claim, message] as const])));
}

/** Plans changes of security groups. A Pod gets its ENI only once its groups are set. */
function planGroups(scene: Scene): readonly Planned[] {
  const { view, busy } = scene;
  return directEnisOf(scene.status).flatMap((eni): readonly Planned[] => {
    const { eniID } = eni;
    const wish = wishOf(view, eni);
    const securityGroups = wantedGroupsOf(view, eni);
    if (
      wish === undefined ||
      !isFor(wish, eni) ||
      securityGroups === undefined ||
      eni.state !== 'Attached' ||
      busy.has(eniID)
    )
      return [];
    if (isSameData(eni.securityGroups, securityGroups)) return [];
    const text = `cannot set the security groups ${securityGroups.join(', ')} of ${eniID}`;
    const hold = holdIfBlocked(scene, [`call/ModifyNetworkInterfaceAttribute/${eniID}`], 'CloudRefused', text);
    if (hold !== undefined) return [{ ...hold, claim: wish.key }];
    const fields = { eniID, securityGroups, claim: wish.key };
    return [{ action: 'ModifyNetworkInterfaceAttribute', fields, priority: 'pod' }];
  });
}

/** Plans the attachment of ENIs that Pods wait for, then of pool ENIs that are still needed. */
function planAttach(scene: Scene, supply: DirectSupply): readonly Planned[] {
  const { view, busy } = scene;
  if (view.leaving !== 'no') return [];
  const isDue = (eni: NodeEniInfo) =>
    eni.state === 'Attaching' && eni.draining !== true && !busy.has(eni.eniID) && !view.stuck.has(eni.eniID);
  const due = directEnisOf(scene.status).filter(isDue);
  const ofClaims = due.filter((eni) => isWantedHere(view, eni));
  const ofPool = due.filter((eni) => eni.claim === undefined).slice(0, Math.max(0, supply.want - supply.have));
  return [...ofClaims, ...ofPool].map((eni) => attach(scene, supply, eni));
}

function attach(scene: Scene, supply: DirectSupply, { eniID, claim }: NodeEniInfo): Planned {
  const { instance } = scene.view;
  const key = claim === undefined ? {} : { claim: `${claim.namespace}/${claim.name}` };
  const hold =
    instance === undefined || !instance.isRunning
      ? instanceHold(scene)
      : scene.isInstanceBusy
        ? CALL_UNDER_WAY
        : (placeHold(scene) ??
          holdIfBlocked(scene, [`call/AttachNetworkInterface/${eniID}`], 'CloudRefused', `cannot attach ${eniID}`));
  if (hold !== undefined || instance === undefined) return { ...(hold ?? instanceHold(scene)), ...key };
  const fields = { eniID, instanceID: instance.instanceId, ...key };
  return { action: 'AttachNetworkInterface', fields, priority: priorityOf(scene, supply, claim !== undefined) };
}

/** Plans new ENIs for static Pods, only where the claim has none yet. */
function planForClaims(scene: Scene, supply: DirectSupply): readonly Planned[] {
  if (scene.view.leaving !== 'no') return [];
  return awaitedWishes(scene.view, scene.status).map((wish) => {
    const one = busyElsewhere(scene, wish) ?? elsewhereHold(scene, wish) ?? create(scene, supply, wish);
    return 'action' in one ? one : { ...one, claim: wish.key };
  });
}

/** Blocks while another node creates or moves an ENI for the claim: a second ENI would be a duplicate. */
function busyElsewhere(scene: Scene, { key }: ClaimWish): Hold | undefined {
  if (scene.view.claimCallsElsewhere?.has(key) !== true)
    return holdIfBlocked(scene, [`claim/${key}`], 'CloudRefused', `no exclusive ENI for ${key}`);
  const message = `another node has a call under way for ${key}`;
  return { kind: 'hold', reason: 'CallUnderWay', message, afterMs: SOON_MS };
}

/** Blocks when the ENI that the Pod must have cannot be used here, or not yet. */
function elsewhereHold(scene: Scene, wish: ClaimWish): Hold | undefined {
  const { view } = scene;
  const kept = keptEniOf(view, wish);
  if (kept === undefined && wish.source === undefined && wish.ip === undefined) return undefined;
  const eniId = kept?.eniId ?? wish.source?.eniId ?? '';
  if (kept !== undefined && isOtherZone(view, kept)) {
    const message = `ENI ${kept.eniId} (${kept.primaryIp}) of ${wish.key} is in zone ${kept.zone}, the node in ${view.instance?.zone}`;
    return { kind: 'hold', reason: 'DirectENIElsewhere', message, afterMs: LOOK_AGAIN_MS };
  }
  if (kept?.isFree === true) return limitHold(scene, directSupplyOf(view, scene.status), wish) ?? CALL_UNDER_WAY;
  if (eniId === '') {
    const message = `no exclusive ENI of this cluster has the address ${wish.ip}, which ${wish.key} must have`;
    return { kind: 'hold', reason: 'DirectENIElsewhere', message, afterMs: LOOK_AGAIN_MS };
  }
  const where = kept?.nodeName ?? wish.source?.nodeName ?? 'another node';
  const message = `ENI ${eniId} of ${wish.key} is on ${where} still`;
  return { kind: 'hold', reason: 'DirectENIElsewhere', message, afterMs: SOON_MS };
}

/** The reconcile of another node, or of the VpcENI, ends within seconds. */
const SOON_MS = 2_000;

function planForPool(scene: Scene, supply: DirectSupply): readonly Planned[] {
  const { view } = scene;
  const need = supply.want - supply.have - supply.coming;
  if (need > 0) return [create(scene, supply, undefined)];
  const warm = view.spec.directENIMinWarmTarget ?? WARM_TARGET;
  const isCapped = view.leaving === 'no' && supply.want < supply.demand - warm;
  return isCapped ? [fullHold(supply)] : [];
}

/** Spare exclusive ENIs of a node when its spec contains no number. */
const WARM_TARGET = 1;

function create(scene: Scene, supply: DirectSupply, wish: ClaimWish | undefined): DirectCall | Hold {
  const { view } = scene;
  const { instance } = view;
  if (instance === undefined || !instance.isRunning) return instanceHold(scene);
  const full = limitHold(scene, supply, wish);
  if (full !== undefined) return full;
  if (scene.isInstanceBusy) return CALL_UNDER_WAY;
  const hold = placeHold(scene) ?? quotaHold(scene);
  if (hold !== undefined) return hold;
  const subnet = chooseSubnet(scene, wish);
  if (subnet === undefined) return wish?.subnetIds === undefined ? subnetHold(scene) : noSubnet(scene, wish.subnetIds);
  const groups = wish?.securityGroupIds ?? view.securityGroups ?? [];
  const fields = {
    subnetID: subnet.subnetId,
    tags: { [MODE_TAG.name]: MODE_TAG.direct },
    ...(groups.length === 0 ? {} : { securityGroups: groups }),
    ...(wish === undefined ? {} : { claim: wish.key }),
  };
  const priority = priorityOf(scene, supply, wish !== undefined);
  return { action: 'CreateNetworkInterface', fields, priority };
}

/** Selects the subnet. An exclusive ENI uses one address: its own. */
function chooseSubnet({ view }: Scene, wish: ClaimWish | undefined): SubnetChoice | undefined {
  return view.subnets
    .filter(({ subnetId }) => wish?.subnetIds?.includes(subnetId) ?? true)
    .filter(({ subnetId, isBlocked, freeIps }) => !isBlocked && freeIps > 0 && !view.blocked.has(`subnet/${subnetId}`))
    .reduce<SubnetChoice | undefined>(
      (best, one) => (best !== undefined && best.freeIps >= one.freeIps ? best : one),
      undefined,
    );
}

function noSubnet({ view }: Scene, subnetIds: readonly string[]): Hold {
  const here = view.subnets.filter(({ subnetId }) => subnetIds.includes(subnetId)).map(({ subnetId }) => subnetId);
  const zone = view.instance?.zone ?? 'of the node';
  if (here.length === 0) {
    const message = `none of the subnets ${subnetIds.join(', ')} is in zone ${zone}, or configured`;
    return { kind: 'hold', reason: 'NoSubnetInZone', message, afterMs: LOOK_AGAIN_MS };
  }
  const message = `no free addresses in ${here.join(', ')}`;
  return { kind: 'hold', reason: 'SubnetExhausted', message, afterMs: LOOK_AGAIN_MS };
}

/** Blocks when the node has as many ENIs as it may have; returns undefined when an ENI slot is free. */
function limitHold({ view }: Scene, supply: DirectSupply, wish: ClaimWish | undefined): Hold | undefined {
  if (supply.placesLeft > 0) return undefined;
  const isGoing = supply.have + supply.coming + supply.kept < supply.most && wish === undefined;
  if (!isGoing) return fullHold(supply);
  const message = `all ${view.instance?.secondaryEnis ?? 0} places for ENIs are taken, some by ENIs that are being given back`;
  return { kind: 'hold', reason: 'InstanceENILimit', message, afterMs: LOOK_AGAIN_MS };
}

function fullHold({ demand, kept, awaited, most, have, coming }: DirectSupply): Hold {
  const wanted = `${demand + kept + awaited} exclusive ENIs are wanted, ${kept + awaited} of them for claims`;
  const message = `${wanted}; the node may have ${most} beside its shared ones, and has ${have + coming + kept}`;
  return { kind: 'hold', reason: 'DirectENILimit', message, afterMs: LOOK_AGAIN_MS };
}

function priorityOf({ view }: Scene, { have, want }: DirectSupply, isForClaim: boolean): CallPriority {
  const warm = view.spec.directENIMinWarmTarget ?? WARM_TARGET;
  return isForClaim || have < want - warm ? 'pod' : 'warm';
}
