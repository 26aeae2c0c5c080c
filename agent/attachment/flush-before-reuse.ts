import type { UseCaseDeps } from '../state/ports.ts';

/** Addresses that an ADD takes before their cooldown ended. */
type Reuse = {
  readonly ips: readonly string[];
  /** Some had an owner that lived, which is pressure. */
  readonly isUnderPressure: boolean | undefined;
  /** The warning in that case: 'pool is empty, reusing an address'. */
  readonly warning: string;
  readonly about: Readonly<Record<string, unknown>>;
  /** Gives them back to cool for the full time. */
  readonly coolAgain: () => unknown;
};

/**
 * Deletes the connection tracking entries of addresses that are reused early, so that late replies to the last owner find no
 * connection. Reports pressure in the log and the metric. @throws the error of connection tracking, after `coolAgain`:
 * connections may still exist
 */
export async function flushBeforeReuse(
  { conntrack, metrics, log }: Pick<UseCaseDeps, 'conntrack' | 'metrics' | 'log'>,
  { ips, isUnderPressure, warning, about, coolAgain }: Reuse,
): Promise<void> {
  if (ips.length === 0) return;
  if (isUnderPressure === true) {
    metrics.forcedReuse.inc();
    log.warn(`${warning} before its cooldown ended`, about);
  }
  try {
    await conntrack.flush(ips);
  } catch (error) {
    coolAgain();
    throw error;
  }
}
