import { optional, record, required } from '../../../runtime/decode.ts';
import type { IngressRule } from '../../cloud.ts';
import type { SecurityGroup } from '../../security-groups.ts';
import {
  COUNT,
  decodeAnswer,
  listUpTo,
  SHORT_NAME,
  SHORT_TEXT,
  TAGS,
  tagsOf,
  timeOf,
  withEmptyList,
} from './fields.ts';

/** More rules than any quota gives. */
const MAX_RULES = 10_000;

const RULE = record(
  {
    Action: required(SHORT_TEXT),
    Protocol: optional(SHORT_TEXT),
    Port: optional(SHORT_TEXT),
    CidrBlock: optional(SHORT_TEXT),
    Ipv6CidrBlock: optional(SHORT_TEXT),
  },
  'ignore',
);
const ANSWER = record(
  {
    SecurityGroupPolicySet: required(
      record({ Version: optional(SHORT_TEXT), Ingress: optional(listUpTo(MAX_RULES, RULE)) }, 'ignore'),
    ),
  },
  'ignore',
);

/** Decodes the answer of DescribeSecurityGroupPolicies, without rules of IPv6. @throws CloudError BAD_ANSWER */
export function decodePolicies(value: unknown): { readonly version: string; readonly rules: readonly IngressRule[] } {
  const { SecurityGroupPolicySet } = decodeAnswer(ANSWER, value, 'DescribeSecurityGroupPolicies');
  const { Version = '', Ingress = [] } = SecurityGroupPolicySet;
  const rules = Ingress.filter(
    ({ CidrBlock = '', Ipv6CidrBlock = '' }) => CidrBlock !== '' || Ipv6CidrBlock === '',
  ).map(({ Action, Protocol = '', Port = '', CidrBlock = '' }) => {
    const ports = portsOf(Port);
    const isTemplate = Protocol === '' || ports === 'unreadable';
    return {
      isAccepted: Action.toUpperCase() === 'ACCEPT',
      ...(CidrBlock === '' ? {} : { cidr: CidrBlock.includes('/') ? CidrBlock : `${CidrBlock}/32` }),
      ...(isTemplate ? {} : { protocol: Protocol.toUpperCase() }),
      ...(isTemplate || ports === undefined ? {} : { ports }),
    };
  });
  return { version: Version, rules };
}

const MAX_ON_PAGE = 100;
const GROUP = record(
  {
    SecurityGroupId: required(SHORT_NAME),
    SecurityGroupName: optional(SHORT_TEXT),
    TagSet: optional(TAGS),
    CreatedTime: optional(SHORT_TEXT),
  },
  'ignore',
);
const PAGE = record(
  { SecurityGroupSet: required(listUpTo(MAX_ON_PAGE, GROUP)), TotalCount: required(COUNT) },
  'ignore',
);
const CREATED = record({ SecurityGroup: required(GROUP) }, 'ignore');

/** Decodes the answer of DescribeSecurityGroups. @throws CloudError BAD_ANSWER */
export function decodeGroupPage(value: unknown): {
  readonly objects: readonly SecurityGroup[];
  readonly total: number;
} {
  const answer = withEmptyList(value, 'SecurityGroupSet');
  const { SecurityGroupSet, TotalCount: total } = decodeAnswer(PAGE, answer, 'DescribeSecurityGroups');
  const objects = SecurityGroupSet.map(({ SecurityGroupId, SecurityGroupName = '', TagSet, CreatedTime }) => ({
    securityGroupId: SecurityGroupId,
    name: SecurityGroupName,
    tags: tagsOf(TagSet),
    createdAtMs: timeOf(CreatedTime),
  }));
  return { objects, total };
}

/** Decodes the id in the answer of CreateSecurityGroup. @throws CloudError BAD_ANSWER */
export function decodeCreatedGroup(value: unknown): string {
  return decodeAnswer(CREATED, value, 'CreateSecurityGroup').SecurityGroup.SecurityGroupId;
}

/** Reads `ALL`, `80`, `80,443` and `8000-9000`; undefined: all. */
function portsOf(text: string): IngressRule['ports'] | 'unreadable' {
  if (text === '' || text.toUpperCase() === 'ALL') return undefined;
  const ranges = text.split(',').map((part) => {
    const [, first = '', last = first] = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(part) ?? [];
    return [Number(first), Number(last)] as const;
  });
  return ranges.some(([first, last]) => first < 1 || last < first) ? 'unreadable' : ranges;
}
