import { placeId, type TargetPlace } from './target-place.ts';
import type { ModelHealthCheck, ModelTarget } from './types.ts';

/** What a check says about a target. */
type HealthDetail = 'Alive' | 'Dead' | 'Unknown' | 'Close';

/**
 * What the health checks have found. Where nothing probes, a target is healthy once its check could have succeeded often
 * enough, unless a test says otherwise.
 */
export class HealthBook {
  /** By listener or rule, then by `ip:port`. */
  readonly #found = new Map<string, Map<string, { readonly isAlive: boolean; readonly registeredAtMs: number }>>();
  /** By address: what a test says. */
  readonly #said = new Map<string, boolean>();
  /** Whether something probes: then nothing is healthy before it was found so. */
  isProbed = false;

  /** Notes what a prober found about a target of a listener or rule. */
  note(place: TargetPlace, key: string, isAlive: boolean): void {
    const target = place.targets.get(key);
    if (target === undefined) return;
    const found = this.#found.get(placeId(place)) ?? new Map();
    this.#found.set(placeId(place), found.set(key, { isAlive, registeredAtMs: target.registeredAtMs }));
  }

  /** Makes all targets with an address healthy or not, for tests without packets; undefined: as if nothing was said. */
  say(ip: string, isAlive: boolean | undefined): void {
    if (isAlive === undefined) this.#said.delete(ip);
    else this.#said.set(ip, isAlive);
  }

  /** Forgets a listener or rule. */
  forget(id: string): void {
    this.#found.delete(id);
  }

  /** What the API answers about a target now. */
  detailOf(id: string, check: ModelHealthCheck, target: ModelTarget, nowMs: number): HealthDetail {
    if (check.HealthSwitch === 0) return 'Close';
    const isAlive = this.#said.get(target.ip) ?? this.#foundAbout(id, target);
    if (isAlive !== undefined) return isAlive ? 'Alive' : 'Dead';
    const firstMs = check.IntervalTime * check.HealthNum * 1000;
    return !this.isProbed && nowMs - target.registeredAtMs >= firstMs ? 'Alive' : 'Unknown';
  }

  #foundAbout(id: string, { ip, port, registeredAtMs }: ModelTarget): boolean | undefined {
    const found = this.#found.get(id)?.get(`${ip}:${port}`);
    // One that was registered again is not what was probed before.
    return found?.registeredAtMs === registeredAtMs ? found.isAlive : undefined;
  }
}
