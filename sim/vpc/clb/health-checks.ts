import { fileURLToPath } from 'node:url';
import type { Child } from '../../support/child.ts';
import type { NetnsView } from '../../support/netns.ts';
import type { ListenerPath } from '../api/model/clb/types.ts';

/** How much faster than ordered the checks are. */
const SPEED = 50;

/** A target whose state has changed; `key` is its `ip:port`. A rule of layer 7 stands in the place of a listener. */
export type HealthFound = { readonly listenerId: string; readonly key: string; readonly isAlive: boolean };

/** Checks the targets of listeners with real packets from a namespace; owns a process, begun with the first of them. */
export class HealthChecks {
  readonly #netns: NetnsView;
  readonly #source: string;
  readonly #onFound: (found: HealthFound) => void;
  #prober: Child | undefined;
  #rest = '';

  /** @param source an address of the namespace, of 100.64.0.0/10 */
  constructor(netns: NetnsView, source: string, onFound: (found: HealthFound) => void) {
    this.#netns = netns;
    this.#source = source;
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
    const argv = [process.execPath, script, this.#source, `${SPEED}`];
    return this.#netns.start(argv, { onStdout: (text) => this.#read(text) });
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    // What the prober of this project prints.
    for (const line of lines) this.#onFound(JSON.parse(line) as HealthFound);
  }
}
