import type { BackendNode } from './decide-backend-node.ts';
import type { DesiredTarget } from './desired-load-balancer.ts';
import { type Notice, remark } from './notice.ts';
import type { ServicePort } from './read-service.ts';
import type { ServiceSettings } from './served-annotations.ts';

/** The targets of each port of a Service. */
type TargetPlan = {
  /** Undefined: the targets stay as they are. */
  readonly targetsOf: (port: ServicePort) => readonly DesiredTarget[] | undefined;
  readonly notices: readonly Notice[];
};

type TargetFacts = {
  readonly nodes: readonly BackendNode[];
  readonly settings: Pick<ServiceSettings, 'backendSelector'>;
  readonly maxTargets?: number;
};

/** All Nodes have the same weight; it is TKE's. */
const WEIGHT = 10;

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
  { protocol, nodePort = 0 }: ServicePort,
  backends: readonly BackendNode[],
): readonly DesiredTarget[] {
  // Nothing checks UDP: the kubelet's word has to do, as long as one Node is ready.
  const isTrusted = protocol === 'UDP' && backends.some(({ isReady, isLeaving }) => isReady && !isLeaving);
  const byIp = new Map(
    backends.map(({ ip, instanceId, isReady, isLeaving }): [string, DesiredTarget] => {
      const weight = isLeaving || (isTrusted && !isReady) ? 0 : WEIGHT;
      return [ip, { ip, port: nodePort, ...(instanceId === undefined ? {} : { instanceId }), weight }];
    }),
  );
  return [...byIp.values()];
}

/**
 * Selects at most `most` Nodes, as many of each zone as it goes. Of one zone those with the lowest hash stay, whichever
 * others come and go.
 */
function selectSpread(nodes: readonly BackendNode[], most: number): readonly BackendNode[] {
  if (nodes.length <= most) return nodes;
  const zones = [...Map.groupBy(nodes, ({ zone }) => zone)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, its]) =>
      its.toSorted((one, other) => hashOf(one.name) - hashOf(other.name) || (one.name < other.name ? -1 : 1)),
    );
  const selected: BackendNode[] = [];
  for (let rank = 0; selected.length < most; rank++) {
    for (const zone of zones) {
      const node = zone[rank];
      if (node !== undefined && selected.length < most) selected.push(node);
    }
  }
  return selected;
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return hash >>> 0;
}
