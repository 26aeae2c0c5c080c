import { desiredGroupsOf } from './decide-exclusive-marks.ts';
import { beginCall, checkBreakers, type DecisionContext, type Step } from './decision-context.ts';
import { isSameData } from './same-data.ts';

/**
 * Decides which ENI gets other security groups; content and order count. An undefined list leaves the groups unchanged,
 * an empty list removes them. A pool ENI gets the node's groups, a static one those of its Pod. Takes ids.
 */
export function decideSecurityGroups(context: DecisionContext): Step {
  const { view, busy } = context;
  const due = (context.status.eniInfos ?? []).flatMap((eni) => {
    const wanted = eni.state === 'Attached' && !busy.has(eni.eniID) ? desiredGroupsOf(view, eni) : undefined;
    return wanted === undefined || isSameData(eni.securityGroups, wanted) ? [] : [{ eniID: eni.eniID, wanted }];
  });
  const [next] = due.filter(({ eniID }) => !view.blocked.has(`call/ModifyNetworkInterfaceAttribute/${eniID}`));
  if (next !== undefined) {
    const { eniID, wanted } = next;
    return beginCall(context, 'ModifyNetworkInterfaceAttribute', { eniID, securityGroups: wanted });
  }
  if (view.securityGroups === undefined && due.length === 0) return undefined;
  const keys = [...view.blocked].filter((key) => key.startsWith('call/ModifyNetworkInterfaceAttribute/'));
  return checkBreakers(context, keys, 'CloudRefused', 'cannot change the security groups of an ENI');
}
