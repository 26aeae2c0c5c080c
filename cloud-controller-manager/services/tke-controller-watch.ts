import { findMissingRights } from '../../kube/ask-rights.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import type { ControllerDeps, ReportWaiting } from '../controller/controller-deps.ts';
import { lockObjectOf } from '../controller/lock-object.ts';
import { findTkeTraces, TKE_CONFIG, type TkeSettings } from './find-tke-traces.ts';

/** How often it is looked for; a Service that it writes meanwhile is noticed at once. */
const LOOK_MS = 60_000;
/** Kind of the problem, and reason of the event. */
const KEPT = 'LoadBalancersKeptByOther';

/**
 * Watches for TKE's own service controller. Two that keep the load balancers of the same Services undo what the other one
 * does, so this one does nothing while the other one is at work, and reports that.
 */
export class TkeControllerWatch {
  readonly #deps: ControllerDeps;
  readonly #services: Pick<Informer<KubeObject>, 'values' | 'subscribe'>;
  readonly #reportWaiting: ReportWaiting;
  #traces: string | undefined;
  #settings: TkeSettings = 'unknown';

  constructor(
    deps: ControllerDeps,
    services: Pick<Informer<KubeObject>, 'values' | 'subscribe'>,
    reportWaiting: ReportWaiting,
  ) {
    this.#deps = deps;
    this.#services = services;
    this.#reportWaiting = reportWaiting;
  }

  /** True while it is at work. */
  get isPresent(): boolean {
    return this.#traces !== undefined;
  }

  /** Looks for it once. It is taken to be as before when the API server does not answer. */
  async look(signal: AbortSignal): Promise<void> {
    const { clock, config, log } = this.#deps;
    if (config.tkeServiceController === 'ignore') return;
    try {
      this.#settings = await this.#readSettings(signal);
      this.#note(findTkeTraces(this.#services.values(), this.#settings, clock.nowMs()));
    } catch (error) {
      if (!isKubeError(error)) throw error;
      log.warn("TKE's service controller was not looked for", { error });
    }
  }

  /** Looks for it until aborted; ends then. `onGone` is called when it has gone. */
  async run(onGone: () => void, signal: AbortSignal): Promise<void> {
    const { clock, config } = this.#deps;
    const stop = this.#services.subscribe(({ after }) => {
      if (after === undefined || config.tkeServiceController === 'ignore') return;
      const traces = findTkeTraces([after], this.#settings, clock.nowMs());
      if (traces !== undefined && !this.isPresent) this.#note(traces);
    });
    try {
      for (;;) {
        await clock.sleep(LOOK_MS, signal);
        const was = this.isPresent;
        await this.look(signal);
        if (was && !this.isPresent) onGone();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stop();
    }
  }

  /** The published role has no right to read ConfigMaps. */
  async #readSettings(signal: AbortSignal): Promise<TkeSettings> {
    const { kube } = this.#deps;
    const { namespace, name } = TKE_CONFIG;
    const right = { verb: 'get', resource: 'configmaps', namespace, name };
    if ((await findMissingRights(kube, [right], signal)).length > 0) return 'unknown';
    try {
      return (await kube.get(CONFIG_MAPS, TKE_CONFIG, signal)) === undefined ? 'absent' : 'present';
    } catch (error) {
      if (isKubeError(error, 'FORBIDDEN')) return 'unknown';
      throw error;
    }
  }

  #note(traces: string | undefined): void {
    const was = this.#traces;
    this.#traces = traces;
    const { config, events, log, metrics } = this.#deps;
    metrics.problems.reportOfTerm(
      'tke-service-controller',
      traces === undefined ? [] : [{ kind: KEPT, name: 'tke-service-controller' }],
    );
    if ((was === undefined) === (traces === undefined)) return;
    this.#reportWaiting(traces !== undefined);
    if (traces === undefined) {
      log.info("TKE's own service controller is not at work any more");
      return;
    }
    const message = `service-lb-controller does nothing: TKE's own service controller is at work in this cluster, as ${traces}. Set --load-balancers=none; if it is gone, --tke-service-controller=ignore`;
    log.error("TKE's own service controller keeps the load balancers of this cluster", { traces });
    events.record({ involved: lockObjectOf(config), type: 'Warning', reason: KEPT, message });
  }
}
