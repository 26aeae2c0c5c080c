import { batchesOf, IDS_PER_CALL } from '../batches.ts';
import type { IngressRule, SecurityGroupPort } from '../cloud.ts';
import type { GroupPort } from '../security-groups.ts';
import type { Caller } from './caller.ts';
import { decodeCreatedGroup, decodeGroupPage, decodePolicies } from './decode/security-group.ts';
import { readPages } from './paged.ts';

/** What goes out of a security group: everything. */
const ALL_OUT = { Protocol: 'ALL', Port: 'ALL', CidrBlock: '0.0.0.0/0', Action: 'ACCEPT' } as const;

/** Creates the security group part of the port. */
export function createSecurityGroupPort(call: Caller): SecurityGroupPort {
  return {
    ingress: async (SecurityGroupId, context) =>
      decodePolicies(await call('DescribeSecurityGroupPolicies', { SecurityGroupId }, context)).rules,
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

/** Creates the part of the port for security groups themselves. */
export function createGroupPort(call: Caller): GroupPort {
  return {
    create: async ({ name, description, tags }, context) => {
      const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
      const request = { GroupName: name, GroupDescription: description, Tags };
      return decodeCreatedGroup(await call('CreateSecurityGroup', request, context));
    },
    find: async ({ key, value }, context) => {
      const Filters = [{ Name: `tag:${key}`, Values: [value] }];
      const readPage = async (offset: number) => {
        // This API takes its numbers as texts.
        const request = { Filters, Offset: String(offset), Limit: String(IDS_PER_CALL) };
        return decodeGroupPage(await call('DescribeSecurityGroups', request, context));
      };
      const { objects: groups, isConsistent } = await readPages(readPage, (one) => one.securityGroupId);
      return { groups, isConsistent };
    },
    policies: async (SecurityGroupId, context) =>
      decodePolicies(await call('DescribeSecurityGroupPolicies', { SecurityGroupId }, context)),
    replacePolicies: async (SecurityGroupId, rules, version, context) => {
      // Version 0 does not name a version: it clears all policies, whatever else is said.
      const known = version === '' || version === '0' ? {} : { Version: version };
      const SecurityGroupPolicySet = { ...known, Egress: [ALL_OUT], Ingress: rules.flatMap(policiesOf) };
      await call('ModifySecurityGroupPolicies', { SecurityGroupId, SecurityGroupPolicySet }, context);
    },
    delete: async (SecurityGroupId, context) => {
      await call('DeleteSecurityGroup', { SecurityGroupId }, context);
    },
  };
}

/** A policy has one port or one range of ports. */
function policiesOf({ isAccepted, cidr = '', protocol = 'ALL', ports }: IngressRule) {
  const texts = ports?.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)) ?? ['ALL'];
  return texts.map((Port) => ({
    Protocol: protocol,
    Port,
    CidrBlock: cidr,
    Action: isAccepted ? 'ACCEPT' : 'DROP',
    PolicyDescription: '',
  }));
}
