import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { eniClaimOf } from './claim-marks.ts';
import { isShortForPods } from './count-slots.ts';
import { desiredGroupsOf, isRequestedHere } from './decide-exclusive-marks.ts';
import type { Answer } from './decision.ts';
import { checkBreakers, type DecisionContext, slotsOf } from './decision-context.ts';
import { type EniKind, isOfKind, KINDS } from './eni-kinds.ts';
import { isSameData } from './same-data.ts';

const ACTION = 'ModifyNetworkInterfaceAttribute';

/** Plans which ENI gets other security groups: a pool ENI those of the node, a static one those of its Pod. */
export function planGroups(context: DecisionContext): readonly Answer[] {
  const { view } = context;
  const due = dueGroups(context);
  const next = due.find(({ eni }) => !view.blocked.has(keyOf(eni.eniID)));
  if (next !== undefined) {
    const fields = { eniID: next.eni.eniID, securityGroups: next.securityGroups };
    const priority = isShortForPods(slotsOf(context, KINDS.shared)) ? 'pod' : 'warm';
    return [{ kind: 'call', action: ACTION, fields, priority }];
  }
  if (view.securityGroups === undefined && due.length === 0) return [];
  const keys = [...view.blocked].filter((key) => key.startsWith(keyOf('')));
  const blocked = checkBreakers(view, keys, 'CloudRefused', 'cannot change the security groups of an ENI');
  return blocked === undefined ? [] : [blocked];
}

/** Plans those of ENIs of a kind that Pods wait for: a Pod gets its ENI only once its groups are set. */
export function planGroupsOfClaims(context: DecisionContext, kind: EniKind): readonly Answer[] {
  const { view } = context;
  return dueGroups(context).flatMap(({ eni, securityGroups }): readonly Answer[] => {
    const { eniID } = eni;
    const claim = eniClaimOf(eni);
    if (claim === undefined || !isOfKind(kind, eni) || !isRequestedHere(view, eni)) return [];
    const text = `cannot set the security groups ${securityGroups.join(', ')} of ${eniID}`;
    const blocked = checkBreakers(view, [keyOf(eniID)], 'CloudRefused', text);
    if (blocked !== undefined) return [{ ...blocked, claim }];
    return [{ kind: 'call', action: ACTION, fields: { eniID, securityGroups, claim }, priority: 'pod', claim }];
  });
}

/** An ENI, and the groups that it should have. */
type DueGroups = { readonly eni: NodeEniInfo; readonly securityGroups: readonly string[] };

/** Lists the ENIs with other groups than they should have; content and order count. */
function dueGroups({ view, status, busy }: DecisionContext): readonly DueGroups[] {
  return (status.eniInfos ?? []).flatMap((eni) => {
    const isFree = eni.state === 'Attached' && !busy.has(eni.eniID);
    const securityGroups = isFree ? desiredGroupsOf(view, eni) : undefined;
    return securityGroups === undefined || isSameData(eni.securityGroups, securityGroups)
      ? []
      : [{ eni, securityGroups }];
  });
}

function keyOf(eniID: string): string {
  return `call/${ACTION}/${eniID}`;
}
