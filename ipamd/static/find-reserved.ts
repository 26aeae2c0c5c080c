import type { ClaimView } from './claim-view.ts';
import type { ClaimDecision } from './decision.ts';

/**
 * Finds the addresses that belong to a claim, on an ENI or on none: if the cloud assigns one to a node by chance, it
 * belongs to the claim. A claim that ends has none any more: otherwise an address that a pool gets by chance would be
 * marked for it, unassigned at once, and assigned again.
 */
export function findReservedIps(
  { vips, places }: Pick<ClaimView, 'vips' | 'places'>,
  decision: Pick<ClaimDecision, 'claim' | 'vips' | 'wishes'>,
): readonly string[] {
  if (isEnding(decision)) return [];
  const written = decision.vips.flatMap((write) => (write.kind === 'put' ? [write.wanted.ip] : []));
  const ended = new Set(decision.vips.flatMap((write) => (write.kind === 'end' ? [write.vip.spec.ip] : [])));
  const kept = vips.map(({ spec }) => spec.ip).filter((ip) => !ended.has(ip));
  const placed = places.flatMap(({ ip, mode }) => (ip === undefined || mode === 'direct-eni' ? [] : [ip]));
  return [...new Set([...written, ...kept, ...placed])].sort();
}

/** Tells whether the claim ends: every node unassigns its address. */
function isEnding({ claim, wishes }: Pick<ClaimDecision, 'claim' | 'wishes'>): boolean {
  if (claim?.kind === 'finish') return true;
  if (claim?.kind === 'put' && claim.wanted.status.phase === 'Releasing') return true;
  return wishes.size > 0 && [...wishes.values()].every(({ want }) => want === 'free');
}
