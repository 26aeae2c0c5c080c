/** How much more a node needs than its object asks for, and how long that can wait. */
export type DemandRise = {
  /** Addresses that are needed beyond those that the object asks for; negative: fewer are. */
  readonly rise: number;
  /** Addresses that Pods could have at once, without those that Pods wait for; negative: Pods wait. */
  readonly free: number;
  /** Addresses that the object asks for and that are not here yet. */
  readonly coming: number;
  /** The rise, and nothing that the object asks for, needs a further ENI. */
  readonly needsEni: boolean;
  /** Since something began to wait, milliseconds. */
  readonly gatheredMs: number;
  /** Since the demand was last written, milliseconds. */
  readonly sinceWriteMs: number;
};

/** How long demand is gathered at most, milliseconds. */
export const GATHER_DEMAND_MS = 10_000;

/** From a write of the demand to addresses that can be given; with a call under way, that one ends first. Milliseconds. */
const TOP_UP_MS = 4_000;
/** Addresses that one call to the cloud brings. */
const FULL_CALL = 10;

/**
 * Reports whether a rise of the demand may be written later, so that Pods that come one by one are topped up in one call:
 * no Pod waits, and the addresses that are left, one at least, last for a top-up at the pace of the last Pods. A rise
 * that fills a call does not wait; nor one that needs an ENI, which takes longer to come; nor a fall.
 */
export function mayGather({ rise, free, coming, needsEni, gatheredMs, sinceWriteMs }: DemandRise): boolean {
  if (rise === 0) return true;
  const spare = free + coming;
  if (rise < 0 || rise >= FULL_CALL || needsEni || free < 0 || spare === 0) return false;
  const topUpMs = coming > 0 ? 2 * TOP_UP_MS : TOP_UP_MS;
  return spare * gatheredMs >= (rise - 1) * topUpMs && spare * sinceWriteMs >= rise * topUpMs;
}
