import type { Right } from '../../kube/ask-rights.ts';
import { ROUTES_LOCK } from '../../pod-routes/hold-routes-lock.ts';
import type { ControllerName } from '../config/controllers-value.ts';
import type { CcmConfig } from '../config/options.ts';
import type { RunController } from '../controller/controller-deps.ts';
import { runLifecycleController } from '../lifecycle/lifecycle-controller.ts';
import { runLoadBalancing } from '../load-balancing/run-load-balancing.ts';
import { runNodeController } from '../nodes/node-controller.ts';
import { runRouteController } from '../routes/route-controller.ts';

/** A controller of this program. */
export type Controller = {
  readonly name: ControllerName;
  /** Without one of these it does not run. Rights to record events are not among them. */
  readonly rights: readonly Right[];
  /** Whether the settings give it something to do; default: they do. */
  readonly isWanted?: (config: CcmConfig) => boolean;
  readonly run: RunController;
};

/** All controllers, in the order in which they start. */
export const CONTROLLERS: readonly Controller[] = [
  {
    name: 'cloud-node-controller',
    rights: [
      ...['get', 'list', 'watch', 'patch'].map((verb) => ({ verb, resource: 'nodes' })),
      { verb: 'patch', resource: 'nodes', subresource: 'status' },
    ],
    run: runNodeController,
  },
  {
    name: 'cloud-node-lifecycle-controller',
    rights: ['get', 'list', 'watch', 'patch', 'delete'].map((verb) => ({ verb, resource: 'nodes' })),
    run: runLifecycleController,
  },
  {
    name: 'node-route-controller',
    rights: [
      ...['get', 'list', 'watch'].map((verb) => ({ verb, resource: 'nodes' })),
      { verb: 'patch', resource: 'nodes', subresource: 'status' },
      ...['get', 'create', 'update'].map((verb) => ({ verb, resource: 'endpoints', namespace: ROUTES_LOCK.namespace })),
    ],
    isWanted: ({ routes }) => routes !== 'none',
    run: runRouteController,
  },
  {
    name: 'service-lb-controller',
    rights: [
      ...['list', 'watch'].map((verb) => ({ verb, resource: 'nodes' })),
      // To write the status is a right that the published role has not: without it the controller works too.
      ...['list', 'watch', 'patch'].map((verb) => ({ verb, resource: 'services' })),
    ],
    isWanted: ({ loadBalancers }) => loadBalancers !== 'none',
    run: runLoadBalancing,
  },
];
