import { finding } from '../catalogue/catalogue.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { FirewallChain, Hook } from '../firewall/build-firewall-chains.ts';
import type { Packet } from '../firewall/evaluate-chain.ts';
import { dropsUnmarkedWayBack, evaluateFirewallChain } from '../firewall/evaluate-firewall-chain.ts';
import { nodeFirewalls } from '../firewall/node-firewalls.ts';
import type { ExplainContext } from './explain-context.ts';

/** A packet that passes the node. */
export type Forwarded = Omit<Packet, 'isEstablished'> & {
  /** Whether it opens its connection: a chain may accept answers where it drops first packets. */
  readonly isFirst: boolean;
};

/** Places that a packet passes: one that is forwarded, is for the node, or comes from it. */
export const HOOKS_OF = {
  forwarded: ['ingress', 'prerouting', 'forward', 'postrouting', 'egress'],
  delivered: ['ingress', 'prerouting', 'input'],
  sent: ['output', 'postrouting', 'egress'],
} as const satisfies Readonly<Record<string, readonly Hook[]>>;

/**
 * Finds the chain of another program that drops a packet. The finding is an error where the drop is certain, and a
 * warning where the result depends on a rule that is not supported here, or where answers may pass.
 */
export function findForwardFault(
  context: ExplainContext,
  forwarded: Forwarded,
  hooks: readonly Hook[] = HOOKS_OF.forwarded,
): Finding | undefined {
  const { facts } = context;
  const packet = isByMarkedEni(context, forwarded) ? { ...forwarded, isMarkedWayBack: true } : forwarded;
  const passed = nodeFirewalls(facts.host)
    .map((chain) => ({ chain, outcome: outcomeAt(chain, packet, hooks, false) }))
    .toSorted((a, b) => hooks.indexOf(a.chain.hook) - hooks.indexOf(b.chain.hook));
  const dropping =
    passed.find(({ outcome }) => outcome === 'dropped') ?? passed.find(({ outcome }) => outcome === 'maybe');
  if (dropping === undefined) return undefined;
  const { chain, outcome } = dropping;
  if (dropsUnmarkedWayBack(chain, packet)) {
    const { name, element, show } = chain;
    const what = `${name} drops it: it looks for the way back without the mark of the ENI`;
    return finding('rpfilter-without-mark', { what, fix: [show], subjects: [element] });
  }
  const isSure = packet.isFirst || outcomeAt(chain, packet, hooks, true) === 'dropped';
  return dropFinding(chain, outcome === 'dropped', isSure);
}

/** Reports whether a packet comes in by an ENI whose mark leads the answer back. */
function isByMarkedEni({ ruleMode, enis }: ExplainContext, { iifs: [ifname] }: Forwarded): boolean {
  return ruleMode === 'compact' && ifname !== undefined && enis.some((eni) => eni.ifname === ifname);
}

function outcomeAt(
  chain: FirewallChain,
  { isFirst: _, ...packet }: Forwarded,
  hooks: readonly Hook[],
  isEstablished: boolean,
): ReturnType<FirewallChain['outcome']> {
  return hooks.includes(chain.hook) ? evaluateFirewallChain(chain, { ...packet, isEstablished }) : 'passes';
}

/** @param isSure whether the packet is not an answer that the chain lets pass */
function dropFinding({ name, element, show }: FirewallChain, isCertain: boolean, isSure: boolean): Finding {
  const what = isCertain
    ? `${name} drops it${isSure ? '' : ', unless it is an answer that the chain knows of'}`
    : `${name} has rules that cannot be decided here: one of them may accept the packet`;
  return finding('forward-policy-drop', {
    what,
    fix: ['tke-eni doctor', show],
    subjects: [element],
    severity: isCertain && isSure ? 'error' : 'warning',
  });
}
