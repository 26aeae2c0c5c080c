import type { CallContext, CloudTask, EipGoal } from '../../../cloud/cloud.ts';
import type { EipDeps } from './eip-deps.ts';
import { eipName, eipTags } from './eip-identity.ts';
import type { EipCall, EipIntent, EipSpec } from './eip-view.ts';

/**
 * Builds the intent of a call. The name by which its result is found again depends on the claim's uid and the count
 * alone. Takes an id.
 */
export function intentOf({ ids, leader }: EipDeps, key: string, uid: string, call: EipCall): EipIntent {
  const base = {
    id: ids.next(),
    action: call.action,
    phase: 'Recorded' as const,
    leaderEpoch: leader.epoch,
    requestTimeoutSeconds: leader.requestTimeoutSeconds,
    recordedAt: ids.now(),
  };
  switch (call.action) {
    case 'AllocateAddresses': {
      const resourceName = eipName(uid, call.allocation);
      return { ...base, resourceName, clientToken: resourceName, tags: eipTags(leader.clusterId, key) };
    }
    case 'AssociateAddress':
      return { ...base, eipID: call.eipId, eniID: call.eniId, ips: [call.ip] };
    default:
      return { ...base, eipID: call.eipId };
  }
}

/** Sends the call of a recorded intent. @throws CloudError */
export async function sendEipCall(
  { cloud }: Pick<EipDeps, 'cloud'>,
  intent: EipIntent,
  spec: EipSpec,
  context: CallContext,
): Promise<CloudTask> {
  const { eipID = '', eniID = '', ips = [] } = intent;
  switch (intent.action) {
    case 'AssociateAddress':
      return await cloud.eips.associate(eipID, eniID, ips[0] ?? '', context);
    case 'DisassociateAddress':
      return await cloud.eips.disassociate(eipID, context);
    case 'ReleaseAddresses':
      return await cloud.eips.release(eipID, context);
    default:
      return (await cloud.eips.allocate(allocationRequestOf(intent, spec), context)).task;
  }
}

/** Returns the task of an accepted call; undefined for a call that was never accepted. */
export function eipTaskOf({ action, taskID, eipID }: EipIntent): CloudTask | undefined {
  if (taskID === undefined || eipID === undefined) return undefined;
  return { taskId: taskID, action, goal: { kind: goalOf(action), eipIds: [eipID] } };
}

function goalOf(action: EipIntent['action']): EipGoal['kind'] {
  if (action === 'AssociateAddress') return 'eip-bound';
  return action === 'ReleaseAddresses' ? 'eip-released' : 'eip-unbound';
}

function allocationRequestOf({ resourceName, clientToken, tags }: EipIntent, spec: EipSpec) {
  const { bandwidthMbps, isp, chargeType, bandwidthPackageID } = spec;
  return {
    count: 1,
    ...(resourceName === undefined ? {} : { name: resourceName }),
    ...(clientToken === undefined ? {} : { clientToken }),
    ...(tags === undefined ? {} : { tags }),
    ...(bandwidthMbps === undefined ? {} : { bandwidthMbps }),
    ...(isp === undefined ? {} : { isp }),
    ...(chargeType === undefined ? {} : { chargeType }),
    ...(bandwidthPackageID === undefined ? {} : { bandwidthPackageId: bandwidthPackageID }),
  };
}
