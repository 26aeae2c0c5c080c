import { isSameData } from './same-data.ts';
import { begin, holdIfBlocked, type Scene, type Step } from './scene.ts';
import { isShared } from './with-enis.ts';

/**
 * Decides which ENI gets other security groups: content and order count. No wish leaves them; an empty list takes them
 * away. Pure, takes ids.
 */
export function decideSecurityGroups(scene: Scene): Step {
  const wanted = scene.view.securityGroups;
  if (wanted === undefined) return undefined;
  const eni = (scene.status.eniInfos ?? []).find(
    (one) =>
      one.state === 'Attached' &&
      isShared(one) &&
      !scene.busy.has(one.eniID) &&
      !isSameData(one.securityGroups, wanted) &&
      !scene.view.blocked.has(`call/ModifyNetworkInterfaceAttribute/${one.eniID}`),
  );
  if (eni !== undefined) {
    return begin(scene, 'ModifyNetworkInterfaceAttribute', { eniID: eni.eniID, securityGroups: wanted });
  }
  const keys = [...scene.view.blocked].filter((key) => key.startsWith('call/ModifyNetworkInterfaceAttribute/'));
  return holdIfBlocked(scene, keys, 'CloudRefused', 'cannot change the security groups of an ENI');
}
