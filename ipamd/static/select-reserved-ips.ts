import type { ClaimDecision } from './claim-decision.ts';
import type { ClaimView } from './claim-view.ts';

/**
 * Finds the addresses that belong to a claim, on an ENI or on none: if the cloud assigns one to a node by chance, it
 * belongs to the claim. A claim that ends has none any more: otherwise an address that a pool gets by chance would be
 * marked for it, unassigned at once, and assigned again.
 */
export function selectReservedIps(
  { vips, locations }: Pick<ClaimView, 'vips' | 'locations'>,
  decision: Pick<ClaimDecision, 'claim' | 'vips' | 'requests'>,
): readonly string[] {
  if (isEnding(decision)) return [];
  const written = decision.vips.flatMap((write) => (write.kind === 'put' ? [write.desired.ip] : []));
  const ended = new Set(decision.vips.flatMap((write) => (write.kind === 'end' ? [write.vip.spec.ip] : [])));
  const remaining = vips.map(({ spec }) => spec.ip).filter((ip) => !ended.has(ip));
  const onEnis = locations.flatMap(({ ip, mode }) => (ip === undefined || mode === 'direct-eni' ? [] : [ip]));
  return [...new Set([...written, ...remaining, ...onEnis])].sort();
}

/** Tells whether the claim ends: every node unassigns its address. */
function isEnding({ claim, requests }: Pick<ClaimDecision, 'claim' | 'requests'>): boolean {
  if (claim?.kind === 'finish') return true;
  if (claim?.kind === 'put' && claim.desired.status.phase === 'Releasing') return true;
  return requests.size > 0 && [...requests.values()].every(({ goal }) => goal === 'free');
}
