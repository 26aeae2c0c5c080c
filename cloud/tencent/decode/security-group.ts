import { optional, record, required } from '../../../runtime/decode.ts';
import type { IngressRule } from '../../cloud.ts';
import { decodeAnswer, listUpTo, SHORT_TEXT } from './fields.ts';

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
    SecurityGroupPolicySet: required(record({ Ingress: optional(listUpTo(MAX_RULES, RULE)) }, 'ignore')),
  },
  'ignore',
);

/** Decodes the answer of DescribeSecurityGroupPolicies, without rules of IPv6. @throws CloudError BAD_ANSWER */
export function decodeIngressRules(value: unknown): readonly IngressRule[] {
  const { SecurityGroupPolicySet } = decodeAnswer(ANSWER, value, 'DescribeSecurityGroupPolicies');
  const { Ingress = [] } = SecurityGroupPolicySet;
  return Ingress.filter(({ CidrBlock = '', Ipv6CidrBlock = '' }) => CidrBlock !== '' || Ipv6CidrBlock === '').map(
    ({ Action, Protocol = '', Port = '', CidrBlock = '' }) => {
      const ports = portsOf(Port);
      const isTemplate = Protocol === '' || ports === 'unreadable';
      return {
        isAccepted: Action.toUpperCase() === 'ACCEPT',
        ...(CidrBlock === '' ? {} : { cidr: CidrBlock.includes('/') ? CidrBlock : `${CidrBlock}/32` }),
        ...(isTemplate ? {} : { protocol: Protocol.toUpperCase() }),
        ...(isTemplate || ports === undefined ? {} : { ports }),
      };
    },
  );
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
