import { batchesOf, IDS_PER_CALL } from '../batches.ts';
import type { SecurityGroupPort } from '../cloud.ts';
import type { Caller } from './caller.ts';
import { decodeIngressRules } from './decode/security-group.ts';

/** Creates the security group part of the port. */
export function createSecurityGroupPort(call: Caller): SecurityGroupPort {
  return {
    ingress: async (SecurityGroupId, context) =>
      decodeIngressRules(await call('DescribeSecurityGroupPolicies', { SecurityGroupId }, context)),
    replace: async (eniId, securityGroupIds, context) => {
      const request = { NetworkInterfaceId: eniId, SecurityGroupIds: [...securityGroupIds] };
      await call('ModifyNetworkInterfaceAttribute', request, context);
    },
    associate: async (eniIds, securityGroupIds, context) => {
      for (const NetworkInterfaceIds of batchesOf(eniIds, IDS_PER_CALL)) {
        const request = { NetworkInterfaceIds: [...NetworkInterfaceIds], SecurityGroupIds: [...securityGroupIds] };
        await call('AssociateNetworkInterfaceSecurityGroups', request, context);
      }
    },
    disassociate: async (eniIds, securityGroupIds, context) => {
      for (const NetworkInterfaceIds of batchesOf(eniIds, IDS_PER_CALL)) {
        const request = { NetworkInterfaceIds: [...NetworkInterfaceIds], SecurityGroupIds: [...securityGroupIds] };
        await call('DisassociateNetworkInterfaceSecurityGroups', request, context);
      }
    },
  };
}
