import { fileURLToPath } from 'node:url';
import type { Child } from '../../support/child.ts';
import type { NetnsView } from '../../support/netns.ts';
import type { ListenerPath } from '../api/model/clb/types.ts';

/** Where checks come from (100.64.0.0/10, as the real ones). */
export const PROBE_SOURCE = '100.64.0.10';

/** How much faster than ordered the checks are. */
const SPEED = 50;

/** A target whose state has changed; `key` is its `ip:port`. */
export type HealthFound = { readonly listenerId: string; readonly key: string; readonly isAlive: boolean };

/** Checks the targets of listeners with real packets from the router; owns a process, begun with the first of them. */
export class HealthChecks {
  readonly #router: NetnsView;
  readonly #onFound: (found: HealthFound) => void;
  #prober: Child | undefined;
  #rest = '';

  constructor(router: NetnsView, onFound: (found: HealthFound) => void) {
    this.#router = router;
    this.#onFound = onFound;
  }

  /** Checks these targets of a listener from now on, and no others. */
  follow({ listenerId, targets, healthCheck }: Pick<ListenerPath, 'listenerId' | 'targets' | 'healthCheck'>): void {
    const checked = healthCheck.HealthSwitch === 1 ? targets.map(({ ip, port }) => ({ ip, port })) : [];
    if (checked.length === 0 && this.#prober === undefined) return;
    this.#prober ??= this.#start();
    this.#prober.writeLine(JSON.stringify({ listenerId, targets: checked, check: healthCheck }));
  }

  /** Ends the checks. Idempotent. */
  async close(): Promise<void> {
    await this.#prober?.stop('SIGKILL');
  }

  #start(): Child {
    const script = fileURLToPath(new URL('health-prober.ts', import.meta.url));
    const argv = [process.execPath, script, PROBE_SOURCE, `${SPEED}`];
    return this.#router.start(argv, { onStdout: (text) => this.#read(text) });
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    // What the prober of this project prints.
    for (const line of lines) this.#onFound(JSON.parse(line) as HealthFound);
  }
}
