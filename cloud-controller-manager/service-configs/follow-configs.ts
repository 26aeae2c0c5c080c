import { findMissingRights, renderRight } from '../../kube/ask-rights.ts';
import { type Informer, openInformer } from '../../kube/informer.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { TKE_SERVICE_CONFIGS } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import type { FoundConfig } from './choose-config.ts';
import { CONFIG_BOUNDS, decodeConfig } from './decode-config.ts';

type FollowDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'log' | 'random' | 'metrics'>;

const ASK_AGAIN_MS = 30_000;
const { group } = TKE_SERVICE_CONFIGS;
const RIGHTS = ['list', 'watch'].map((verb) => ({ verb, group, resource: TKE_SERVICE_CONFIGS.plural }));

/** Follows TkeServiceConfigs from the moment in which one is named, and the rights are granted. */
export class ConfigFollower {
  readonly #deps: FollowDeps;
  readonly #configs: Informer<ReturnType<typeof decodeConfig>>;
  readonly #needed: ChangeSignal;
  readonly #onChange: (key: string) => void;
  #isNeeded = false;
  /** For people: why they are not read. */
  #obstacle: string | undefined;

  /** @param onChange called with `namespace/name` of each one that changes, and with '' when all are read */
  constructor(deps: FollowDeps, onChange: (key: string) => void) {
    const { kube: client, clock, log, random, metrics } = deps;
    this.#deps = deps;
    this.#onChange = onChange;
    this.#needed = new ChangeSignal(clock);
    this.#configs = openInformer({
      ...{ client, clock, log, random, type: TKE_SERVICE_CONFIGS, decode: decodeConfig, bounds: CONFIG_BOUNDS },
      observer: {
        ...metrics.informer,
        onFailure: (type, error) => {
          metrics.informer.onFailure?.(type, error);
          if (isKubeError(error, 'NOT_FOUND')) this.#obstacle = NOT_DEFINED;
        },
      },
    });
  }

  /** Finds the TkeServiceConfig of this `namespace/name`; it is followed from now on. */
  find(key: string): FoundConfig {
    if (!this.#isNeeded) {
      this.#isNeeded = true;
      this.#needed.notify();
    }
    if (this.#configs.isSynced) return this.#configs.get(key) ?? { kind: 'absent' };
    return this.#obstacle === undefined ? { kind: 'starting' } : { kind: 'unusable', why: this.#obstacle };
  }

  /** Follows until aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#isNeeded) await this.#needed.wait(ASK_AGAIN_MS, signal);
    while (!signal.aborted && !(await this.#mayFollow(signal))) await this.#needed.wait(ASK_AGAIN_MS, signal);
    if (signal.aborted) return;
    const stop = this.#configs.subscribe(({ key }) => this.#onChange(key));
    const synced = this.#configs.synced(signal).then(() => this.#onChange(''));
    await Promise.all([this.#configs.start(signal), synced.catch(() => {})]);
    stop();
  }

  async #mayFollow(signal: AbortSignal): Promise<boolean> {
    try {
      const missing = (await findMissingRights(this.#deps.kube, RIGHTS, signal)).map(renderRight);
      this.#obstacle =
        missing.length === 0
          ? undefined
          : `tke-cloud-controller-manager may not ${missing.join(', ')}; grant it, as docs/cloud-controller-manager.md says`;
      return missing.length === 0;
    } catch (error) {
      if (!signal.aborted)
        this.#deps.log.warn('the API server does not say whether TkeServiceConfigs may be read', { error });
      return false;
    }
  }
}

const NOT_DEFINED =
  'the cluster has no definition of TkeServiceConfig; install the one of the chart or of the component load-balancers';
