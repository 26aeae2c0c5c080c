import type {
  CreateSecurityGroupResponse,
  DescribeSecurityGroupPoliciesResponse,
  DescribeSecurityGroupsResponse,
  SecurityGroup,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/vpc/v20170312/vpc_models.js';
import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type DescribeRules, select } from './filters.ts';
import { wireTags, writtenTime } from './limits.ts';
import type { Params } from './params.ts';
import type { ModelSecurityGroup, SecurityRule } from './security-group-book.ts';
import type { CloudState } from './state.ts';

const DESCRIBE: DescribeRules<ModelSecurityGroup> = {
  idField: 'SecurityGroupIds',
  mostIds: 100,
  mostFilters: 10,
  mostValues: 5,
  invalidFilter: 'InvalidParameter.FilterInvalidKey',
  tagsOf: ({ tags }) => tags,
  fields: {
    'security-group-id': ({ groupId }) => [groupId],
    'project-id': () => ['0'],
    'security-group-name': ({ name }) => [name],
  },
  hasTextPaging: true,
};

const MOST_NAME = 60;
const MOST_DESCRIPTION = 100;
const POLICY_FIELDS = ['Protocol', 'Port', 'CidrBlock', 'Action', 'PolicyDescription'];

/** The APIs of security groups. Those that were there from the beginning are not described, and cannot be deleted. */
export const SECURITY_GROUP_ACTIONS: ActionTable = {
  CreateSecurityGroup: { required: ['GroupName', 'GroupDescription'], optional: ['ProjectId', 'Tags'], handle: create },
  DescribeSecurityGroups: {
    required: [],
    optional: ['SecurityGroupIds', 'Filters', 'Offset', 'Limit'],
    handle: ({ state, params, asOfMs }) => {
      const { securityGroups } = state;
      const groups = asOfMs === undefined ? securityGroups.made : securityGroups.madeAsOf(asOfMs);
      const { page, total } = select(groups, params, DESCRIBE);
      const answer: Pick<DescribeSecurityGroupsResponse, 'SecurityGroupSet' | 'TotalCount'> = {
        SecurityGroupSet: page.map(wireGroup),
        TotalCount: total,
      };
      return answer;
    },
  },
  DescribeSecurityGroupPolicies: {
    required: ['SecurityGroupId'],
    optional: ['Filters'],
    handle: ({ state, params }) => {
      const groupId = knownGroup(state, params);
      const Ingress = state.securityGroups.rulesOf([groupId]).map((rule, at) => ({
        ...{ PolicyIndex: at, CidrBlock: rule.cidr, Action: rule.isAccepted ? 'ACCEPT' : 'DROP' },
        ...{ Protocol: rule.protocol ?? 'ALL', Port: portOf(rule), PolicyDescription: '' },
        ...{ Ipv6CidrBlock: '', SecurityGroupId: '', ModifyTime: '2026-01-01 08:00:00' },
      }));
      const Egress = [{ PolicyIndex: 0, Protocol: 'ALL', Port: 'ALL', CidrBlock: '0.0.0.0/0', Action: 'ACCEPT' }];
      const Version = String(state.securityGroups.versionOf(groupId));
      const answer: Pick<DescribeSecurityGroupPoliciesResponse, 'SecurityGroupPolicySet'> = {
        SecurityGroupPolicySet: { Version, Egress, Ingress },
      };
      return answer;
    },
  },
  ModifySecurityGroupPolicies: {
    required: ['SecurityGroupId', 'SecurityGroupPolicySet'],
    optional: ['SortPolicys'],
    handle: modifyPolicies,
  },
  DeleteSecurityGroup: { required: ['SecurityGroupId'], optional: [], handle: remove },
};

function create({ state, params }: ModelCall): object {
  if (state.securityGroups.made.size >= state.securityGroupQuota) {
    throw new ApiError('LimitExceeded', 'The account has as many security groups as it may have.');
  }
  const group: ModelSecurityGroup = {
    groupId: state.nextId('sg'),
    name: params.text('GroupName', MOST_NAME),
    description: params.text('GroupDescription', MOST_DESCRIPTION),
    tags: params.tags(),
    createdAtMs: state.nowMs,
  };
  state.securityGroups.make(group);
  const answer: Pick<CreateSecurityGroupResponse, 'SecurityGroup'> = { SecurityGroup: wireGroup(group) };
  return answer;
}

/** Replaces what comes in; what goes out is not simulated. Version 0 clears all, whatever else is said. */
function modifyPolicies({ state, params }: ModelCall): object {
  const groupId = knownGroup(state, params);
  const set = params.part('SecurityGroupPolicySet', [], ['Version', 'Egress', 'Ingress']);
  const version = set?.text('Version') ?? '';
  if (set === undefined || version === '0') {
    state.setSecurityRules(groupId, []);
    return {};
  }
  if (version !== '' && version !== String(state.securityGroups.versionOf(groupId))) {
    throw new ApiError('UnsupportedOperation.VersionMismatch', `The policies of ${groupId} have another version.`);
  }
  if (!set.has('Egress') || !set.has('Ingress')) {
    throw new ApiError('MissingParameter', 'Egress and Ingress are needed both.');
  }
  const [rules] = ['Ingress', 'Egress'].map((direction) => {
    const policies = set.parts(direction, 10_000, ['Protocol', 'CidrBlock', 'Action'], POLICY_FIELDS).map(ruleOf);
    if (policies.length > state.securityPolicyQuota) {
      throw new ApiError('LimitExceeded.SecurityGroupPolicySet', `${groupId} may not have so many policies.`);
    }
    if (new Set(policies.map((rule) => JSON.stringify(rule))).size < policies.length) {
      throw new ApiError('UnsupportedOperation.DuplicatePolicy', 'A policy is there twice.');
    }
    return policies;
  });
  state.setSecurityRules(groupId, rules ?? []);
  return {};
}

function remove({ state, params }: ModelCall): object {
  const groupId = knownGroup(state, params);
  const isBound =
    [...state.clb.balancers().values()].some(({ securityGroupIds }) => securityGroupIds.includes(groupId)) ||
    [...state.enis.values()].some(({ securityGroupIds }) => securityGroupIds.includes(groupId));
  if (isBound || !state.securityGroups.made.has(groupId)) {
    throw new ApiError('ResourceInUse', `The security group ${groupId} is in use.`);
  }
  state.securityGroups.remove(groupId, state.nowMs);
  return {};
}

function knownGroup(state: CloudState, params: Params): string {
  const groupId = params.text('SecurityGroupId');
  if (!/^sg-[a-z0-9]{1,32}$/.test(groupId)) {
    throw new ApiError('InvalidParameterValue.Malformed', `SecurityGroupId ${groupId} is malformed.`);
  }
  state.securityGroups.known([groupId]);
  return groupId;
}

/** A port, or a range of ports with a hyphen; a list of ports is refused. */
function ruleOf(policy: Params): SecurityRule {
  const protocol = policy.text('Protocol').toUpperCase();
  const portText = policy.text('Port').toUpperCase();
  const action = policy.choice('Action', ['ACCEPT', 'DROP'], 'DROP');
  const [, address = '', length = '32'] = /^(\d+\.\d+\.\d+\.\d+)(?:\/(\d+))?$/.exec(policy.text('CidrBlock')) ?? [];
  if (address === '' || Number(length) > 32) throw invalid('CidrBlock');
  // As documented: every 0.0.0.0/n is 0.0.0.0/0.
  const cidr = address === '0.0.0.0' ? '0.0.0.0/0' : `${address}/${length}`;
  const isAccepted = action === 'ACCEPT';
  if (protocol === 'ALL') {
    if (portText !== 'ALL') throw invalid('Port');
    return { cidr, isAccepted };
  }
  if (protocol !== 'TCP' && protocol !== 'UDP') throw invalid('Protocol');
  if (portText === 'ALL') return { cidr, protocol, isAccepted };
  const [, first = '', last] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(portText) ?? [];
  const [port, lastPort] = [Number(first), Number(last ?? first)];
  if (port < 1 || lastPort < port || lastPort > 65_535) throw invalid('Port');
  return { cidr, protocol, port, ...(lastPort === port ? {} : { lastPort }), isAccepted };
}

function portOf({ port, lastPort }: SecurityRule): string {
  if (port === undefined) return 'ALL';
  return lastPort === undefined ? String(port) : `${port}-${lastPort}`;
}

function wireGroup({ groupId, name, description, tags, createdAtMs }: ModelSecurityGroup): SecurityGroup {
  const written = writtenTime(createdAtMs);
  return {
    ...{ SecurityGroupId: groupId, SecurityGroupName: name, SecurityGroupDesc: description },
    ...{ ProjectId: '0', IsDefault: false, CreatedTime: written, UpdateTime: written },
    TagSet: wireTags(tags) as NonNullable<SecurityGroup['TagSet']>,
  };
}

function invalid(name: string): ApiError {
  return new ApiError('InvalidParameterValue', `The parameter ${name} of a policy is not valid.`);
}
