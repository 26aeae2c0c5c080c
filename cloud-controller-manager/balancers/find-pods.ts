import type { BackendNodes } from '../backends/backend-nodes.ts';
import type { EndpointSlice } from '../backends/endpoint-slice.ts';
import type { PodFollower } from '../backends/follow-pods.ts';
import type { CcmConfig } from '../config/options.ts';
import { blocking, type Notice } from './notice.ts';
import type { PodBackends } from './plan-pod-targets.ts';

/** Finds what one plan depends on of Pods, and when that changes though no object does. */
export class PodFinder {
  readonly #config: Pick<CcmConfig, 'routes'>;
  readonly #pods: PodFollower;
  readonly #nodes: BackendNodes;
  #nextMs = Number.POSITIVE_INFINITY;

  constructor(config: Pick<CcmConfig, 'routes'>, pods: PodFollower, nodes: BackendNodes) {
    this.#config = config;
    this.#pods = pods;
    this.#nodes = nodes;
  }

  /** When the next Pod that a slice names counts as gone, milliseconds from now; infinite: none does. */
  get nextMs(): number {
    return this.#nextMs;
  }

  /** The facts of the Pods behind slices. */
  of(slices: readonly EndpointSlice[]): PodBackends {
    return {
      slices,
      podOf: (key) => this.#pods.podOf(key),
      hasEnded: (uid) => this.#pods.hasEnded(uid),
      isGone: (key) => {
        const leftMs = this.#pods.mayAppearMs(key);
        if (leftMs > 0) this.#nextMs = Math.min(this.#nextMs, leftMs);
        return leftMs === 0;
      },
      nodeOf: (name) => this.#nodes.nodeOf(name),
      keepsRoutes: this.#config.routes !== 'none',
    };
  }
}

/** Refuses to bind Pods while rights are missing. @param annotation the one that asks for it */
export function refuseForbidden(missing: readonly string[], annotation: string): Notice {
  const message = `Pods cannot be bound: tke-cloud-controller-manager may not ${missing.join(', ')}; grant it, as docs/cloud-controller-manager.md says, or write "false" into the annotation ${annotation}. Nothing of the load balancer is changed`;
  return blocking('DirectAccessImpossible', message);
}
