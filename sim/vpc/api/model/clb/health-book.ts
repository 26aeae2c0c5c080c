import type { ModelHealthCheck, ModelListener, ModelTarget } from './types.ts';

/** What a check says about a target. */
type HealthDetail = 'Alive' | 'Dead' | 'Unknown' | 'Close';

/**
 * What the health checks have found. Where nothing probes, a target is healthy once its check could have succeeded often
 * enough, unless a test says otherwise.
 */
export class HealthBook {
  /** By listener, then by `ip:port`. */
  readonly #found = new Map<string, Map<string, { readonly isAlive: boolean; readonly registeredAtMs: number }>>();
  /** By address: what a test says. */
  readonly #said = new Map<string, boolean>();
  /** Whether something probes: then nothing is healthy before it was found so. */
  isProbed = false;

  /** Notes what a prober found about a target of a listener. */
  note(listener: ModelListener, key: string, isAlive: boolean): void {
    const target = listener.targets.get(key);
    if (target === undefined) return;
    const found = this.#found.get(listener.listenerId) ?? new Map();
    this.#found.set(listener.listenerId, found.set(key, { isAlive, registeredAtMs: target.registeredAtMs }));
  }

  /** Makes all targets with an address healthy or not, for tests without packets; undefined: as if nothing was said. */
  say(ip: string, isAlive: boolean | undefined): void {
    if (isAlive === undefined) this.#said.delete(ip);
    else this.#said.set(ip, isAlive);
  }

  /** Forgets a listener. */
  forget(listenerId: string): void {
    this.#found.delete(listenerId);
  }

  /** What the API answers about a target now. */
  detailOf(listenerId: string, check: ModelHealthCheck, target: ModelTarget, nowMs: number): HealthDetail {
    if (check.HealthSwitch === 0) return 'Close';
    const isAlive = this.#said.get(target.ip) ?? this.#foundAbout(listenerId, target);
    if (isAlive !== undefined) return isAlive ? 'Alive' : 'Dead';
    const firstMs = check.IntervalTime * check.HealthNum * 1000;
    return !this.isProbed && nowMs - target.registeredAtMs >= firstMs ? 'Alive' : 'Unknown';
  }

  #foundAbout(listenerId: string, { ip, port, registeredAtMs }: ModelTarget): boolean | undefined {
    const found = this.#found.get(listenerId)?.get(`${ip}:${port}`);
    // One that was registered anew is not what was probed before.
    return found?.registeredAtMs === registeredAtMs ? found.isAlive : undefined;
  }
}
