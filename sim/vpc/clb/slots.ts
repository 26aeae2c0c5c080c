/** A target that takes new connections. */
export type WeightedTarget = { readonly ip: string; readonly port: number; readonly weight: number };

/** More slots than this make no difference that a test could find. */
const MOST_SLOTS = 512;

/**
 * Who gets which of the next connections, one slot a connection: as many slots as weights, without their common divisor,
 * those of one target spread over the round. Empty when no target has a weight.
 */
export function slotsOf(targets: readonly WeightedTarget[]): readonly WeightedTarget[] {
  const weighted = targets.filter(({ weight }) => weight > 0);
  const sum = weighted.reduce((total, { weight }) => total + weight, 0);
  const scale = Math.max(1, sum / MOST_SLOTS);
  const shares = weighted.map(({ weight }) => Math.max(1, Math.round(weight / scale)));
  const divisor = shares.reduce(gcd, 0);
  const rest = weighted.map((target, index) => ({ target, share: (shares[index] ?? 0) / divisor, credit: 0 }));
  const round = rest.reduce((total, { share }) => total + share, 0);
  return Array.from({ length: round }, () => {
    for (const one of rest) one.credit += one.share;
    const next = rest.reduce((best, one) => (one.credit > best.credit ? one : best));
    next.credit -= round;
    return next.target;
  });
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
