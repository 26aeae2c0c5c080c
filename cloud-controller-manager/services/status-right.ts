import { findMissingRights } from '../../kube/ask-rights.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

const ASK_AGAIN_MS = 60_000;
const PROBLEM = 'services/status';

type RightDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'log' | 'metrics'>;

/** Whether the status of Services may be written. The published role has no right to it. */
export class StatusRight {
  readonly #deps: RightDeps;
  #isGranted: Promise<boolean> = Promise.resolve(false);
  #askedAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: RightDeps) {
    this.#deps = deps;
  }

  /** Asks the API server. A right that is granted stays; one that is missing is asked for again after a minute. */
  async isGranted(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps;
    if (!(await this.#isGranted) && clock.monotonicMs() - this.#askedAtMs >= ASK_AGAIN_MS) {
      this.#askedAtMs = clock.monotonicMs();
      this.#isGranted = this.#ask(signal);
    }
    return await this.#isGranted;
  }

  /** Withdraws what is reported. */
  close(): void {
    this.#deps.metrics.problems.report(PROBLEM, []);
  }

  async #ask(signal: AbortSignal): Promise<boolean> {
    const { kube, metrics, log } = this.#deps;
    const right = { verb: 'patch', resource: 'services', subresource: 'status' };
    try {
      const missing = await findMissingRights(kube, [right], signal);
      const problem = { kind: 'Forbidden', name: 'service-lb-controller: patch services/status' };
      metrics.problems.report(PROBLEM, missing.length === 0 ? [] : [problem]);
      return missing.length === 0;
    } catch (error) {
      // The write itself shows what is missing.
      log.warn('the API server does not say whether the status of Services may be written', { error });
      return true;
    }
  }
}
