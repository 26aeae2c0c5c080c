import { finding } from '../catalogue/catalogue.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { FirewallChain } from '../firewall/build-firewall-chains.ts';

/** Most conditions that a finding names. */
const MAX_NAMED = 5;

/**
 * Builds the finding for a chain that may drop packets, by conditions that this program does not evaluate.
 * @param packets 'it', 'packets of Pods'
 */
export function notEvaluatedFinding(
  { name, element, show }: Pick<FirewallChain, 'name' | 'element' | 'show'>,
  packets: string,
  notEvaluated: readonly string[],
): Finding {
  const named = notEvaluated.slice(0, MAX_NAMED).map((condition) => `"${condition}"`);
  const more = notEvaluated.length - named.length;
  const list = more > 0 ? [...named, `and ${more} more`] : named;
  const what = `${name} may drop ${packets}; not evaluated: ${list.join(', ')}`;
  return finding('firewall-not-evaluated', { what, fix: [show], subjects: [element] });
}
