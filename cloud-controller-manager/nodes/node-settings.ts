import type { Cloud } from '../../cloud/cloud.ts';
import type { CcmConfig } from '../config/options.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

/** What the controllers of Nodes need of the process. */
export type NodeControllersDeps = Pick<
  ControllerDeps,
  'kube' | 'nodes' | 'instances' | 'events' | 'brake' | 'clock' | 'log'
> & {
  readonly metrics: Pick<ControllerDeps['metrics'], 'taintRemovalDelay' | 'initialSyncDelay'>;
  readonly cloud: Pick<Cloud, 'instances'>;
  readonly config: Pick<
    CcmConfig,
    | 'vpcId'
    | 'providerIdForm'
    | 'zoneLabels'
    | 'expectsRoutes'
    | 'routes'
    | 'nodeStatusUpdateMs'
    | 'nodeMonitorMs'
    | 'nodeReleasePercent'
    | 'cloudTimeoutMs'
  >;
};
