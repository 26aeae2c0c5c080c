import type { BackendPort } from '../backends/backend-port.ts';
import type { BackendSettings } from '../backends/backend-settings.ts';
import type { BackendNode } from '../backends/decide-backend-node.ts';
import { selectSpread } from '../backends/select-spread.ts';
import type { DesiredTarget } from './desired-targets.ts';
import { type Notice, remark } from './notice.ts';

/** The targets of each port of a Service. */
export type TargetPlan = {
  /** Undefined: the targets stay as they are. */
  readonly targetsOf: (port: BackendPort) => readonly DesiredTarget[] | undefined;
  /** Addresses whose targets stay as they are: their port is not known yet. Absent: none. */
  readonly keptIpsOf?: (port: BackendPort) => readonly string[];
  readonly notices: readonly Notice[];
  /** Whether Nodes stay targets that are targets and are not planned: nothing can take their place. */
  readonly keepsNodes?: boolean;
};

type TargetFacts = {
  readonly nodes: readonly BackendNode[];
  readonly settings: Pick<BackendSettings, 'backendSelector'>;
  readonly maxTargets?: number;
};

/** Weight of each target that serves; it is TKE's. */
export const TARGET_WEIGHT = 10;

/** Plans the targets of a Service: node ports of the Nodes that are backends. */
export function planTargets({ nodes, settings, maxTargets = Number.POSITIVE_INFINITY }: TargetFacts): TargetPlan {
  const { backendSelector } = settings;
  const selected = nodes.filter(({ labels }) => backendSelector === undefined || backendSelector.matches(labels));
  if (backendSelector !== undefined && selected.length === 0) {
    const message = `the selector ${backendSelector.text} of the annotation service.kubernetes.io/qcloud-loadbalancer-backends-label selects no Node; the backends stay as they are`;
    return { targetsOf: () => undefined, notices: [remark('UnAvailableLoadBalancer', message)] };
  }
  const backends = selectSpread(selected, maxTargets);
  const notices: Notice[] = [];
  if (backends.length < selected.length) {
    const message = `${selected.length} Nodes are backends, and a listener may have ${maxTargets} targets; ${backends.length} of them are bound, of all zones; raise the quota of the account or select fewer`;
    notices.push(remark('TargetsOverQuota', message));
  }
  if (!backends.some(({ isLeaving }) => !isLeaving)) {
    notices.push(remark('UnAvailableLoadBalancer', 'There are no available nodes for LoadBalancer'));
  }
  return { targetsOf: (port) => targetsOf(port, backends), notices };
}

function targetsOf(
  { protocol, nodePort = 0 }: BackendPort,
  backends: readonly BackendNode[],
): readonly DesiredTarget[] {
  // Nothing checks UDP: the kubelet's word has to do, as long as one Node is ready.
  const isTrusted = protocol === 'UDP' && backends.some(({ isReady, isLeaving }) => isReady && !isLeaving);
  const byIp = new Map(
    backends.map(({ ip, instanceId, isReady, isLeaving }): [string, DesiredTarget] => {
      const weight = isLeaving || (isTrusted && !isReady) ? 0 : TARGET_WEIGHT;
      return [ip, { ip, port: nodePort, ...(instanceId === undefined ? {} : { instanceId }), weight }];
    }),
  );
  return [...byIp.values()];
}
