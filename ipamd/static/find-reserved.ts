import type { ClaimView } from './claim-view.ts';
import type { ClaimDecision } from './decision.ts';

/**
 * Finds the addresses that are a claim's, on an ENI or on none: whoever is given one by chance gives it to the claim. One that
 * ends has none any more: marked for it, what a node's pool is given would go back at once, and come again. Pure.
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

/** Every node gives back what it has of it. */
function isEnding({ claim, wishes }: Pick<ClaimDecision, 'claim' | 'wishes'>): boolean {
  if (claim?.kind === 'finish') return true;
  if (claim?.kind === 'put' && claim.wanted.status.phase === 'Releasing') return true;
  return wishes.size > 0 && [...wishes.values()].every(({ want }) => want === 'free');
}
