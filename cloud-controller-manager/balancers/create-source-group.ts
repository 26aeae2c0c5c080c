import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { SecurityGroupSpec } from '../../cloud/security-groups.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { DesiredLoadBalancer } from './desired-load-balancer.ts';
import type { ObservedLoadBalancer } from './observed-load-balancer.ts';
import { readOwnerMark } from './owner-mark.ts';
import type { OwnerMarkWriter } from './owner-mark-writer.ts';
import { APPEARS_MS } from './unresolved-calls.ts';

const ASK_AGAIN_MS = 20_000;

/** Makes the security groups for source ranges. The API has no ClientToken, so one is on record before it is made. */
export class SourceGroupCreator {
  readonly #deps: Pick<ControllerDeps, 'cloud' | 'clock'>;
  readonly #marks: OwnerMarkWriter;
  /** By owner: since when none is found that is on record; monotonic milliseconds. */
  readonly #absentSinceMs = new Map<string, number>();

  constructor(deps: Pick<ControllerDeps, 'cloud' | 'clock'>, marks: OwnerMarkWriter) {
    this.#deps = deps;
    this.#marks = marks;
  }

  /**
   * Makes a security group, unless one that was begun may still be found.
   * @returns the object with its mark; undefined: ask again. @throws CloudError, KubeError
   */
  async create(object: KubeObject, spec: SecurityGroupSpec, context: CallContext): Promise<KubeObject | undefined> {
    const head = this.#marks.headOf(object);
    if (readOwnerMark(head).sourceGroup === true && this.#leftMs(head.key) > 0) return undefined;
    this.#absentSinceMs.delete(head.key);
    const noted = await this.#marks.noteGroup(object, true, context.signal);
    try {
      await this.#deps.cloud.groups.create(spec, context);
    } catch (error) {
      // Nothing was made, which is certain: the next attempt need not look for it.
      if (isCloudError(error, 'never', 'quota', 'credentials', 'throttled', 'backoff'))
        await this.#marks.noteGroup(noted, false, context.signal);
      throw error;
    }
    return noted;
  }

  /** Takes a group out of the mark that is not asked for, and was not found for a minute. @throws KubeError */
  async note(
    object: KubeObject,
    { sourceGroup: wanted, followsOnly = false }: DesiredLoadBalancer,
    { sourceGroup }: ObservedLoadBalancer,
    signal: AbortSignal,
  ): Promise<{ readonly object: KubeObject; readonly waitMs: number }> {
    const head = this.#marks.headOf(object);
    const none = { object, waitMs: Number.POSITIVE_INFINITY };
    if (sourceGroup !== undefined) {
      this.#absentSinceMs.delete(head.key);
      // Its mark may have been lost.
      return { ...none, object: await this.#marks.noteGroup(object, true, signal) };
    }
    if (wanted !== undefined || followsOnly || readOwnerMark(head).sourceGroup !== true) return none;
    if (this.#leftMs(head.key) > 0) return { ...none, waitMs: ASK_AGAIN_MS };
    this.#absentSinceMs.delete(head.key);
    return { ...none, object: await this.#marks.noteGroup(object, false, signal) };
  }

  /** Forgets an owner. */
  forget(key: string): void {
    this.#absentSinceMs.delete(key);
  }

  #leftMs(key: string): number {
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = this.#absentSinceMs.get(key) ?? nowMs;
    this.#absentSinceMs.set(key, sinceMs);
    return sinceMs + APPEARS_MS - nowMs;
  }
}
