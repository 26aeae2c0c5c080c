import type { Logger } from '../../runtime/log.ts';

/**
 * Reports keys of network configurations that the executables do not use: each combination once, so that a misspelled key
 * can be found, and a configuration of the product fills no log.
 */
export class IgnoredKeys {
  readonly #log: Logger;
  readonly #reported = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Logs the keys of a network, unless that was done before. */
  report(network: string, keys: readonly string[]): void {
    if (keys.length === 0) return;
    const shown = keys.slice(0, MAX_KEYS);
    const id = JSON.stringify([network, ...shown]);
    if (this.#reported.has(id) || this.#reported.size >= MAX_REPORTED) return;
    this.#reported.add(id);
    this.#log.warn('the network configuration has keys that are not used', { network, keys: shown });
  }
}

const MAX_KEYS = 16;
/** Most combinations: a node has a handful of network configurations. */
const MAX_REPORTED = 64;
