import type { CallContext, Cloud, CloudTask, Eni, EniGoal, EniSpec, IpChange } from '../../cloud/cloud.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent, IntentResult, ObservedEni } from '../decide/decision.ts';
import { isForExtension } from '../decide/with-enis.ts';

/** What an accepted call will bring, and its task; no task for a call that is done when it returns. */
export type Accepted = {
  readonly task: CloudTask | undefined;
  readonly eni?: Eni;
  readonly ips?: readonly string[];
};

/** Description of ipamd's ENIs in the cloud. */
const DESCRIPTION = 'made by tke-eni-ipamd; do not change';

/** Sends the cloud call of an intent. The request depends on object and intent alone. @throws CloudError */
export async function sendCall(
  cloud: Cloud,
  intent: Intent,
  status: NodeEniConfigStatus,
  context: CallContext,
): Promise<Accepted> {
  const { action, eniID = '', instanceID = '', clientToken, ips = [], securityGroups = [] } = intent;
  switch (action) {
    case 'CreateNetworkInterface':
      return await cloud.enis.create(specOf(intent, status), context);
    case 'AttachNetworkInterface':
      return {
        task: await cloud.enis.attach(eniID, instanceID, context, {
          clientToken,
          isExtension: isForExtension(status, eniID),
        }),
      };
    case 'DetachNetworkInterface':
      return { task: await cloud.enis.detach(eniID, instanceID, context, clientToken) };
    case 'DeleteNetworkInterface':
      return { task: await cloud.enis.delete(eniID, context) };
    case 'AssignPrivateIpAddresses':
      return acceptedChange(
        intent.ips !== undefined && intent.ipCount === undefined
          ? await cloud.ips.assignExact(eniID, ips, context, clientToken)
          : await cloud.ips.assign(eniID, intent.ipCount ?? 1, context, clientToken),
      );
    case 'UnassignPrivateIpAddresses':
      return acceptedChange(await cloud.ips.unassign(eniID, ips, context));
    case 'MigratePrivateIpAddress':
      return { task: await cloud.ips.migrate(ips[0] ?? '', eniID, intent.targetENIID ?? '', context), ips };
    case 'ModifyNetworkInterfaceAttribute':
      await setGroups(cloud, eniID, securityGroups, context);
      return { task: undefined };
    default:
      throw new Error(`no node makes the call ${action}`);
  }
}

/**
 * Replaces the security groups as a whole. An empty list would change nothing in the cloud, so the groups are removed
 * by id.
 */
async function setGroups(cloud: Cloud, eniID: string, groups: readonly string[], context: CallContext): Promise<void> {
  if (groups.length > 0) return await cloud.securityGroups.replace(eniID, groups, context);
  const [eni] = await cloud.enis.describe([eniID], context);
  const current = eni?.securityGroupIds ?? [];
  if (current.length > 0) await cloud.securityGroups.disassociate([eniID], current, context);
}

/** Returns the task of an accepted intent, from the record alone. */
export function taskOf(intent: Intent): CloudTask | undefined {
  const { taskID: taskId, action } = intent;
  const goal = goalOf(intent);
  return taskId === undefined || goal === undefined ? undefined : { taskId, action, goal };
}

/**
 * Returns the result of a call that reached its goal, from its record and the ENI in the answer of a creation. Undefined
 * where only a description has it, as for an ENI that was attached.
 */
export function resultOf(
  { action, ips, securityGroups = [] }: Intent,
  created?: ObservedEni,
): IntentResult | undefined {
  switch (action) {
    case 'CreateNetworkInterface':
      return created && { action, eni: created };
    case 'DetachNetworkInterface':
    case 'DeleteNetworkInterface':
      return { action };
    case 'AssignPrivateIpAddresses':
    case 'UnassignPrivateIpAddresses':
    case 'MigratePrivateIpAddress':
      return ips === undefined ? undefined : { action, ips };
    case 'ModifyNetworkInterfaceAttribute':
      return { action, securityGroups };
    default:
      return undefined;
  }
}

function goalOf({ action, eniID: eniId, targetENIID, instanceID: instanceId, ips }: Intent): EniGoal | undefined {
  if (eniId === undefined) return undefined;
  switch (action) {
    case 'CreateNetworkInterface':
      return { kind: 'created', eniId };
    case 'AttachNetworkInterface':
      return instanceId === undefined ? undefined : { kind: 'attached', eniId, instanceId };
    case 'DetachNetworkInterface':
      return { kind: 'detached', eniId };
    case 'DeleteNetworkInterface':
      return { kind: 'deleted', eniId };
    case 'AssignPrivateIpAddresses':
      return ips === undefined ? undefined : { kind: 'ips-assigned', eniId, ips };
    case 'UnassignPrivateIpAddresses':
      return ips === undefined ? undefined : { kind: 'ips-unassigned', eniId, ips };
    case 'MigratePrivateIpAddress':
      return ips === undefined || targetENIID === undefined
        ? undefined
        : { kind: 'ips-assigned', eniId: targetENIID, ips };
    default:
      return undefined;
  }
}

function specOf(intent: Intent, status: NodeEniConfigStatus): EniSpec {
  const { resourceName: name = '', subnetID: subnetId = '', tags, ipCount, clientToken, securityGroups } = intent;
  return {
    vpcId: status.vpcID ?? '',
    subnetId,
    name,
    description: DESCRIPTION,
    ...(securityGroups === undefined ? {} : { securityGroupIds: securityGroups }),
    ...(tags === undefined ? {} : { tags }),
    ...(ipCount === undefined ? {} : { ipCount }),
    ...(clientToken === undefined ? {} : { clientToken }),
  };
}

/** Converts a change of addresses: at most ten addresses, so one call and one task. */
function acceptedChange({ ips, tasks }: IpChange): Accepted {
  return { task: tasks[0], ips };
}
