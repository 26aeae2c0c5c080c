import { findMissingRights, type Right, renderRight } from '../../kube/ask-rights.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import type { ControllerName } from '../config/controllers-value.ts';
import type { Controller } from './controllers.ts';

/** Dependencies of the questions for rights. */
type RightsDeps = {
  readonly kube: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** Reports the rights that a controller lacks, when they have changed; none: it has all. */
  readonly report: (controller: ControllerName, missing: readonly string[]) => void;
};

/** The API server did not answer. */
const RETRY_MS = 5_000;
/** An administrator grants what is missing. */
const ASK_AGAIN_MS = 30_000;

/**
 * Asks for the rights of controllers at the start, and again while one is missing: a controller begins when its rights
 * are granted, without a restart. A right that is taken away later shows in the calls that it refuses.
 */
export class ControllerRights {
  readonly #deps: RightsDeps;
  readonly #controllers: readonly Controller[];
  readonly #missing = new Map<ControllerName, readonly string[]>();
  readonly #changed: ChangeSignal;

  constructor(deps: RightsDeps, controllers: readonly Controller[]) {
    this.#deps = deps;
    this.#controllers = controllers;
    this.#changed = new ChangeSignal(deps.clock);
  }

  /** Returns the rights that a controller lacks; undefined while the API server has not been asked. */
  missingOf(name: ControllerName): readonly string[] | undefined {
    return this.#missing.get(name);
  }

  /** Resolves when the controller has all its rights; rejects with the signal's reason. */
  async granted(name: ControllerName, signal: AbortSignal): Promise<void> {
    while (this.#missing.get(name)?.length !== 0) {
      signal.throwIfAborted();
      await this.#changed.wait(ASK_AGAIN_MS, signal);
    }
  }

  /** Asks until every controller has its rights, or until aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      let waitMs = ASK_AGAIN_MS;
      try {
        if (await this.#ask(signal)) return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn('the API server does not say which rights there are; will ask again', { error });
        waitMs = RETRY_MS;
      }
      await clock.sleep(waitMs, signal).catch(() => {});
    }
  }

  /** Returns true when no right is missing. */
  async #ask(signal: AbortSignal): Promise<boolean> {
    const wanted = new Map<string, Right>(
      this.#controllers.flatMap(({ rights }) => rights.map((right) => [renderRight(right), right])),
    );
    const missing = new Set((await findMissingRights(this.#deps.kube, [...wanted.values()], signal)).map(renderRight));
    for (const { name, rights } of this.#controllers) {
      const lacks = rights.map(renderRight).filter((right) => missing.has(right));
      const before = this.#missing.get(name) ?? [];
      this.#missing.set(name, lacks);
      if (before.join() !== lacks.join()) this.#deps.report(name, lacks);
    }
    this.#changed.notify();
    return missing.size === 0;
  }
}
