import { findMissingRights, type Right, renderRight } from '../../kube/ask-rights.ts';
import { INGRESSES } from '../../kube/resource-types.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { lockObjectOf } from '../controller/lock-object.ts';

const ASK_AGAIN_MS = 30_000;
const { group } = INGRESSES;
/** Rights that the role of load balancers has not. */
const RIGHTS: readonly Right[] = [
  ...['list', 'watch', 'patch'].map((verb) => ({ verb, group, resource: 'ingresses' })),
  { verb: 'patch', group, resource: 'ingresses', subresource: 'status' },
  ...['list', 'watch'].map((verb) => ({ verb, group, resource: 'ingressclasses' })),
];

type RightsDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'config' | 'events' | 'log' | 'metrics'>;

/**
 * Waits until the rights to Ingresses are granted. What is missing is a problem in the metrics, and one event.
 * @param onMissing is called when one is missing; @throws the reason of the signal
 */
export async function awaitIngressRights(deps: RightsDeps, onMissing: () => void, signal: AbortSignal): Promise<void> {
  const { clock, config, events, kube, log, metrics } = deps;
  let before = '';
  for (;;) {
    try {
      const missing = (await findMissingRights(kube, RIGHTS, signal)).map(renderRight);
      const problems = missing.map((right) => ({ kind: 'Forbidden', name: `ingress-lb-controller: ${right}` }));
      metrics.problems.reportOfTerm('ingresses', problems);
      if (missing.length === 0) return;
      onMissing();
      if (missing.join() !== before) {
        const message = `Ingresses are not served: tke-cloud-controller-manager may not ${missing.join(', ')}; grant it to its ClusterRole, as conf/kubernetes/components/ingresses does, or set --ingress=none`;
        log.error('Ingresses are not served for want of rights', { missing });
        events.record({ involved: lockObjectOf(config), type: 'Warning', reason: 'Forbidden', message });
      }
      before = missing.join();
    } catch (error) {
      signal.throwIfAborted();
      log.warn('the API server does not say whether Ingresses may be read; will ask again', { error });
    }
    await clock.sleep(ASK_AGAIN_MS, signal);
  }
}
