import type { Zone } from '../../../cloud/cloud.ts';
import { isCloudError } from '../../../cloud/cloud-error.ts';
import type { Term } from '../../calls/term.ts';

type ZoneTerm = Pick<Term, 'cloud' | 'clock' | 'log'>;

/** A label that the zones of the region do not have, or a refusal, is not asked for again before this. */
const ASK_AGAIN_MS = 600_000;
const RETRY_MS = 5_000;
const CALL_MS = 30_000;

/** Names of zones for the labels of super nodes: TKE writes numbers (`100003`), the cloud's subnets have names. */
export class ZoneNames {
  readonly #term: ZoneTerm;
  #zones: readonly Zone[] = [];
  #nextMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(term: ZoneTerm) {
    this.#term = term;
  }

  /** Returns the name of the zone that a label names by number or name; undefined when none is known. */
  nameOf(label: string): string | undefined {
    return this.#zones.find(({ name, number }) => name === label || number === label)?.name;
  }

  /**
   * Asks the cloud for the zones of the region when the label is of none that is known; one call serves all labels.
   * Returns the milliseconds until the next try when it did not answer; undefined when `nameOf` says what there is to
   * know, after a refusal too. Rejects with the signal's reason only.
   */
  async resolve(label: string, signal: AbortSignal): Promise<number | undefined> {
    const { clock, log } = this.#term;
    if (this.nameOf(label) !== undefined || clock.monotonicMs() < this.#nextMs) return undefined;
    try {
      this.#asking ??= this.#ask(signal).finally(() => {
        this.#asking = undefined;
      });
      await this.#asking;
      if (this.nameOf(label) === undefined) log.warn('the region has no zone of the label of a super node', { label });
    } catch (error) {
      signal.throwIfAborted();
      if (!isCloudError(error)) throw error;
      log.warn('the zones of the region could not be described', { label, error: error.message });
      if (error.retry !== 'never') return Math.max(RETRY_MS, error.afterMs);
      this.#nextMs = clock.monotonicMs() + ASK_AGAIN_MS;
    }
    return undefined;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { cloud, clock } = this.#term;
    this.#zones = await cloud.instances.zones({ priority: 'pod', owner: 'zones', signal, timeoutMs: CALL_MS });
    this.#nextMs = clock.monotonicMs() + ASK_AGAIN_MS;
  }
}
