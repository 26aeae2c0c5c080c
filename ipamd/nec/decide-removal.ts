import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { offersOf } from './offers.ts';
import { begin, CALL_UNDER_WAY, holdIfBlocked, type Scene, type Step } from './scene.ts';
import { unseenCreations } from './supply.ts';
import { hasTakenKept } from './took-kept.ts';
import { detachingEni, ipv4CountOf, isShared, pooledIpv4Of, withEni } from './with-enis.ts';

/**
 * Decides which ENI is detached or deleted: one that is Detaching already, else a vacant one that drains or is not
 * needed. It becomes Detaching, its addresses Releasing, in the write that records the call. Takes ids.
 */
export function decideRemoval(scene: Scene): Step {
  const free = (scene.status.eniInfos ?? []).filter((eni) => isShared(eni) && !scene.busy.has(eni.eniID));
  const leaving = free.filter((eni) => eni.state === 'Detaching');
  const vacant = removableEnis(scene).filter((eni) => !scene.busy.has(eni.eniID));
  let hold: Step;
  for (const eni of [...leaving, ...vacant]) {
    const step = isReplacementComing(scene, eni) ? CALL_UNDER_WAY : removeEni(scene, eni);
    if (step?.kind === 'begin') return step;
    hold ??= step;
  }
  return hold;
}

/**
 * Tells whether the ENI has to wait for its replacement: as long as it has the static address, the cloud cannot give
 * the same address to the ENI that is created instead.
 */
function isReplacementComing({ view, status, isInstanceBusy }: Scene, eni: NodeEniInfo): boolean {
  if (view.leaving !== 'no' || !hasTakenKept(view, eni)) return false;
  return isInstanceBusy && unseenCreations(status).length > 0;
}

/**
 * Lists the ENIs that are vacant and not needed, in the order of removal: their addresses are not unassigned one by
 * one.
 */
export function removableEnis(scene: Scene): readonly NodeEniInfo[] {
  const offers = offersOf({ ...scene.view, status: scene.status });
  return (scene.status.eniInfos ?? [])
    .filter((eni) => isShared(eni) && eni.state !== 'Detaching' && offers.isVacant(eni) && isUnneeded(scene, eni))
    .filter((eni) => !scene.claims.reserved.has(eni.eniID))
    .sort((one, other) => Number(isGoing(other)) - Number(isGoing(one)) || ipv4CountOf(one) - ipv4CountOf(other));
}

function isGoing(eni: NodeEniInfo): boolean {
  return eni.draining === true;
}

function isUnneeded({ view, supply }: Scene, eni: NodeEniInfo): boolean {
  if (view.leaving === 'force') return true;
  if (isGoing(eni)) return true;
  if (eni.state === 'Attaching' && view.stuck.has(eni.eniID)) return true;
  // Addresses that are still coming do not make a serving ENI superfluous.
  const counted = supply.have + (eni.state === 'Attaching' ? supply.coming : 0);
  return counted - pooledIpv4Of(eni).length >= supply.want;
}

/**
 * Detaches the ENI, or deletes it when it is on no instance. It becomes Detaching in the write that records the call.
 * Takes ids.
 */
export function removeEni(scene: Scene, eni: NodeEniInfo): Step {
  const { eniID } = eni;
  const status = withEni(scene.status, eniID, detachingEni);
  const { instanceID } = scene.status;
  if (eni.deviceIndex === undefined || instanceID === undefined) {
    const hold = holdIfBlocked(
      scene,
      [`call/DeleteNetworkInterface/${eniID}`],
      'CloudRefused',
      `cannot delete ${eniID}`,
    );
    return hold ?? begin(scene, 'DeleteNetworkInterface', { eniID }, status);
  }
  if (scene.isInstanceBusy) return CALL_UNDER_WAY;
  const hold = holdIfBlocked(scene, [`call/DetachNetworkInterface/${eniID}`], 'CloudRefused', `cannot detach ${eniID}`);
  return hold ?? begin(scene, 'DetachNetworkInterface', { eniID, instanceID }, status);
}
