import type { DescribeSecurityGroupPoliciesResponse } from 'tencentcloud-sdk-nodejs/tencentcloud/services/vpc/v20170312/vpc_models.js';
import type { ActionTable } from './call.ts';
import { knownGroups } from './security-groups.ts';

/** The APIs of security groups. */
export const SECURITY_GROUP_ACTIONS: ActionTable = {
  DescribeSecurityGroupPolicies: {
    required: ['SecurityGroupId'],
    optional: ['Filters'],
    handle: ({ state, params }) => {
      const groupId = params.text('SecurityGroupId');
      knownGroups(state.spec.securityGroupIds, [groupId]);
      const Ingress = state.securityGroups.rulesOf([groupId]).map(({ cidr, protocol, port, isAccepted }, at) => ({
        ...{ PolicyIndex: at, CidrBlock: cidr, Action: isAccepted ? 'ACCEPT' : 'DROP', PolicyDescription: '' },
        ...{ Protocol: protocol ?? 'ALL', Port: port === undefined ? 'ALL' : String(port) },
        ...{ Ipv6CidrBlock: '', SecurityGroupId: '', ModifyTime: '2026-01-01 08:00:00' },
      }));
      const Egress = [{ PolicyIndex: 0, Protocol: 'ALL', Port: 'ALL', CidrBlock: '0.0.0.0/0', Action: 'ACCEPT' }];
      const answer: Pick<DescribeSecurityGroupPoliciesResponse, 'SecurityGroupPolicySet'> = {
        SecurityGroupPolicySet: { Version: '1', Egress, Ingress },
      };
      return answer;
    },
  },
};
