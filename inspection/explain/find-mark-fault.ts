import { hex } from '../../dataplane/eni-mark.ts';
import { NODEPORT_MARK } from '../../dataplane/numbers.ts';
import { finding } from '../catalogue/catalogue.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { FirewallChain } from '../firewall/build-firewall-chains.ts';
import type { Packet } from '../firewall/evaluate-chain.ts';
import { rewritesAt } from '../firewall/evaluate-firewall-chain.ts';
import { nodeFirewalls } from '../firewall/node-firewalls.ts';
import type { ExplainContext } from './explain-context.ts';

/** Priority of our chain that sets the mark. @see dataplane/nft-table.ts preroutingChain */
const OUR_PRIORITY = -150;

/**
 * Finds the chain of another program that changes our bits of a packet's mark after our chain has set them, before the
 * packet is routed. It is an error where the change is certain. At our own priority the order is not known.
 */
export function findMarkFault({ facts, mask }: ExplainContext, packet: Packet, mark: number): Finding | undefined {
  const bits = (mask | NODEPORT_MARK) >>> 0;
  const found = nodeFirewalls(facts.host)
    .filter(({ hook, priority }) => hook === 'prerouting' && priority >= OUR_PRIORITY)
    .flatMap((chain) => changeBy(chain, packet, { mark, bits }) ?? []);
  return found.find(({ severity }) => severity === 'error') ?? found[0];
}

function changeBy(
  chain: FirewallChain,
  packet: Packet,
  { mark, bits }: { readonly mark: number; readonly bits: number },
): Finding | undefined {
  for (const { rewrite, isSure } of rewritesAt(chain, packet)) {
    if (rewrite.kind !== 'mark') continue;
    const after = rewrite.after(mark);
    // What a rule copies from elsewhere is not known, and mostly the mark that the connection had.
    if (after === undefined || ((after ^ mark) & bits) === 0) continue;
    const isCertain = isSure && chain.priority > OUR_PRIORITY;
    return finding('mark-collision', {
      what: `${chain.name} ${isCertain ? 'changes' : 'may change'} its mark from ${hex(mark)} to ${hex(after)}; our bits are ${hex(bits)}`,
      fix: [chain.show, 'let that program leave our bits as they are, or give the agent another --eni-mark-mask'],
      subjects: [chain.element],
      severity: isCertain ? 'error' : 'warning',
    });
  }
  return undefined;
}
