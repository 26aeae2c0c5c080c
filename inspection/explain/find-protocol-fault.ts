import { RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import { renderRule } from '../../netlink/render-rule.ts';
import { finding } from '../catalogue/catalogue.ts';
import type { Finding } from '../catalogue/finding.ts';
import { PROTOCOL, protocolName } from '../faults/narrow-selector.ts';
import type { HostFacts } from '../node/node-facts.ts';
import { ruleElement } from '../node/rule-selector.ts';
import { findRoute, type RouteResult } from './find-route.ts';
import { addressFamily, type Flow } from './flow.ts';
import { refusalText, ruleText } from './routing-text.ts';

/** Tells whether rules of the node select by protocol: then packets of one flow may get different routes. */
export function hasProtocolRules({ rules }: Pick<HostFacts, 'rules'>): boolean {
  return rules.some(({ ipProto = 0 }) => ipProto !== 0);
}

/**
 * Finds a rule of another program that refuses packets of one protocol, or leads them elsewhere, where other packets of
 * the flow get a route.
 * @param result the route of a packet of the flow
 */
export function findProtocolFault(host: HostFacts, flow: Flow, result: RouteResult): Finding | undefined {
  if (!hasProtocolRules(host)) return undefined;
  const protocols = [flow.family === 4 ? PROTOCOL.icmp : PROTOCOL.icmpv6, PROTOCOL.tcp, PROTOCOL.udp];
  const found = protocols.flatMap((ipProto) =>
    differenceOf(flow, result, findRoute(host, { ...flow, ipProto }), ipProto),
  );
  return found.find(({ severity }) => severity === 'error') ?? found[0];
}

function differenceOf(flow: Flow, usual: RouteResult, own: RouteResult, ipProto: number): readonly Finding[] {
  const { rule } = own;
  if (rule?.ipProto === undefined || rule.protocol === RTPROT_TKE_ENI || rule === usual.rule) return [];
  const isRefused = own.kind === 'refused';
  const outcome = isRefused ? refusalText(own.code) : `table ${rule.table}`;
  return [
    finding('foreign-rule-above-ours', {
      what: `rule "${ruleText(rule)}" catches ${protocolName(ipProto)} packets of this flow before ours: ${outcome}`,
      fix: [
        renderRule('delete', { ...rule, family: addressFamily(flow.family) }),
        'stop the program that adds it, or give it a priority above 1537',
      ],
      subjects: [ruleElement(rule, flow.family)],
      ...(isRefused ? {} : { severity: 'warning' as const }),
    }),
  ];
}
