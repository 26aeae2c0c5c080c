import { finding } from '../catalogue/catalogue.ts';
import type { Finding } from '../catalogue/finding.ts';
import { notEvaluatedFinding } from '../faults/not-evaluated-finding.ts';
import type { FirewallChain, Hook } from '../firewall/build-firewall-chains.ts';
import { type ChainVerdict, PASSES, type Packet } from '../firewall/evaluate-chain.ts';
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
 * warning where it depends on conditions that are not evaluated, or where answers may pass.
 */
export function findForwardFault(
  context: ExplainContext,
  forwarded: Forwarded,
  hooks: readonly Hook[] = HOOKS_OF.forwarded,
): Finding | undefined {
  const { facts } = context;
  const packet = isByMarkedEni(context, forwarded) ? { ...forwarded, isMarkedWayBack: true } : forwarded;
  const passed = nodeFirewalls(facts.host)
    .map((chain) => ({ chain, ...verdictAt(chain, packet, hooks, false) }))
    .toSorted((a, b) => hooks.indexOf(a.chain.hook) - hooks.indexOf(b.chain.hook));
  const dropping = passed.find(({ outcome }) => outcome === 'dropped');
  if (dropping !== undefined) {
    const { chain } = dropping;
    if (dropsUnmarkedWayBack(chain, packet)) {
      const { name, element, show } = chain;
      const what = `${name} drops it: it looks for the way back without the mark of the ENI`;
      return finding('rpfilter-without-mark', { what, fix: [show], subjects: [element] });
    }
    const isSure = packet.isFirst || verdictAt(chain, packet, hooks, true).outcome === 'dropped';
    const what = `${chain.name} drops it${isSure ? '' : ', unless it is an answer that the chain knows of'}`;
    return dropFinding(chain, what, isSure ? 'error' : 'warning');
  }
  const open = passed.find(({ notEvaluated }) => notEvaluated.length > 0);
  if (open !== undefined) return notEvaluatedFinding(open.chain, 'it', open.notEvaluated);
  const maybe = passed.find(({ outcome }) => outcome === 'maybe');
  if (maybe === undefined) return undefined;
  return dropFinding(maybe.chain, `${maybe.chain.name} drops it, unless one of its rules accepts it`, 'warning');
}

/** Reports whether a packet comes in by an ENI whose mark leads the answer back. */
function isByMarkedEni({ ruleMode, enis }: ExplainContext, { iifs: [ifname] }: Forwarded): boolean {
  return ruleMode === 'compact' && ifname !== undefined && enis.some((eni) => eni.ifname === ifname);
}

function verdictAt(
  chain: FirewallChain,
  { isFirst: _, ...packet }: Forwarded,
  hooks: readonly Hook[],
  isEstablished: boolean,
): ChainVerdict {
  return hooks.includes(chain.hook) ? evaluateFirewallChain(chain, { ...packet, isEstablished }) : PASSES;
}

function dropFinding({ element, show }: FirewallChain, what: string, severity: 'error' | 'warning'): Finding {
  return finding('forward-policy-drop', { what, fix: ['tke-eni doctor', show], subjects: [element], severity });
}
