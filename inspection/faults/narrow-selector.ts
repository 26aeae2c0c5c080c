import type { RuleMessage } from '../../netlink/rule-message.ts';
import { FIB_RULE_INVERT } from '../../netlink/uapi/fib-rules.ts';
import { IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_TCP, IPPROTO_UDP } from '../../netlink/uapi/in.ts';

/** Names in messages of the protocols that Pods mostly use. */
const NAMES: ReadonlyMap<number, string> = new Map([
  [IPPROTO_ICMP, 'ICMP'],
  [IPPROTO_TCP, 'TCP'],
  [IPPROTO_UDP, 'UDP'],
  [IPPROTO_ICMPV6, 'ICMPv6'],
]);

/** Returns 'TCP', or 'protocol 47'. */
export function protocolName(protocol: number): string {
  return NAMES.get(protocol) ?? `protocol ${protocol}`;
}

/** What of the packets of a Pod a rule matches, by protocol, ports and traffic class. */
type NarrowSelector = {
  /** 'ICMP packets', or 'some packets'. */
  readonly packets: string;
  /** Whether it matches all packets of a protocol that Pods mostly use. */
  readonly isWholeProtocol: boolean;
};

/** Returns which packets a rule selects by protocol, ports and traffic class; undefined when it selects none by them. */
export function narrowSelectorOf({ ipProto = 0, ...rule }: RuleMessage): NarrowSelector | undefined {
  const isByMore = rule.dportRange !== undefined || rule.sportRange !== undefined || rule.tos !== 0;
  if (!isByMore && ipProto === 0) return undefined;
  const isWholeProtocol = !isByMore && NAMES.has(ipProto) && (rule.flags & FIB_RULE_INVERT) === 0;
  return { packets: isWholeProtocol ? `${protocolName(ipProto)} packets` : 'some packets', isWholeProtocol };
}
