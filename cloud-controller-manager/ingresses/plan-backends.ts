import { describeValue } from '../../runtime/decode.ts';
import type { BackendPort } from '../backends/backend-port.ts';
import type { BackendNode } from '../backends/decide-backend-node.ts';
import type { DesiredTarget } from '../balancers/desired-targets.ts';
import type { Notice } from '../balancers/notice.ts';
import { type PodBackends, planPodTargets, type UnboundPods } from '../balancers/plan-pod-targets.ts';
import { planTargets } from '../balancers/plan-targets.ts';
import type { planRules } from './plan-rules.ts';
import type { RuleBackend } from './read-ingress.ts';
import type { IngressSettings } from './served-annotations.ts';

/** What the targets of rules are made of. */
type BackendFacts = {
  readonly backends: readonly RuleBackend[];
  readonly portsOf: (service: string) => readonly BackendPort[] | 'missing' | 'external';
  readonly settings: Pick<IngressSettings, 'drainsLeaving' | 'drainsUnready'>;
  readonly maxTargets?: number;
  /** The Pods of a Service; absent: Nodes are the backends. */
  readonly podsOf?: (service: string) => PodBackends;
  /** Every Node that may be a backend; absent: Pods are the backends. */
  readonly nodes?: readonly BackendNode[];
};

/** The targets of the Services of an Ingress. Notices are of those that were asked for. */
type BackendPlan = {
  readonly targetsOf: Parameters<typeof planRules>[0]['targetsOf'];
  /** The name of the Pod that has an address; undefined: not known. */
  readonly podOf: (ip: string) => string | undefined;
  readonly unbound: () => UnboundPods;
  readonly notices: () => readonly Notice[];
};

type PodTargets = ReturnType<typeof planPodTargets>;

/** Plans the targets of rules: Pods of Services, or node ports of Nodes. It depends on its arguments alone. */
export function planBackends(facts: BackendFacts): BackendPlan {
  const { backends, portsOf, settings, maxTargets, podsOf, nodes = [] } = facts;
  const byService = new Map<string, PodTargets>();
  const pods = new Map<string, string>();
  /** By node port: a rule of another path has the same targets. */
  const byNodePort = new Map<number, readonly DesiredTarget[]>();
  const usedPorts = new Map<string, Set<number | string>>();
  for (const { service, port } of backends) usedPorts.set(service, (usedPorts.get(service) ?? new Set()).add(port));
  let ofNodes: ReturnType<typeof planTargets> | undefined;
  return {
    targetsOf: (service, port) => (podsOf === undefined ? targetsOfNodes(port) : targetsOfPods(service, port)),
    podOf: (ip) => pods.get(ip),
    unbound: () => ({
      impossible: new Set([...byService.values()].flatMap(({ unbound }) => [...unbound.impossible])),
      unselected: new Set([...byService.values()].flatMap(({ unbound }) => [...unbound.unselected])),
    }),
    notices: () => [
      ...(ofNodes?.notices ?? []),
      ...[...byService].flatMap(([service, { notices }]) =>
        notices.map((notice) => ({ ...notice, message: `Service ${describeValue(service)}: ${notice.message}` })),
      ),
    ],
  };

  function targetsOfNodes(port: BackendPort): ReturnType<BackendPlan['targetsOf']> {
    ofNodes ??= planTargets({ nodes, settings: {}, ...(maxTargets === undefined ? {} : { maxTargets }) });
    const { nodePort = 0 } = port;
    const targets = byNodePort.get(nodePort) ?? ofNodes.targetsOf(port) ?? [];
    byNodePort.set(nodePort, targets);
    return { targets };
  }

  function targetsOfPods(service: string, port: BackendPort): ReturnType<BackendPlan['targetsOf']> {
    const planned = byService.get(service) ?? planService(service);
    byService.set(service, planned);
    const targets = planned.targetsOf(port);
    const keptIps = planned.keptIpsOf?.(port) ?? [];
    return {
      ...(targets === undefined ? {} : { targets }),
      ...(keptIps.length === 0 ? {} : { keptIps }),
      ...(planned.keepsNodes === true ? { keepsNodes: true } : {}),
    };
  }

  function planService(service: string): PodTargets {
    const its = podsOf?.(service) ?? {
      slices: [],
      podOf: () => undefined,
      nodeOf: () => undefined,
      keepsRoutes: false,
    };
    for (const { endpoints } of its.slices)
      for (const { ip, pod } of endpoints) if (pod !== undefined) pods.set(ip, pod.slice(pod.indexOf('/') + 1));
    const ports = portsOf(service);
    const used = typeof ports === 'string' ? [] : ports.filter((port) => isUsed(service, port));
    return planPodTargets(its, settings, used, maxTargets);
  }

  function isUsed(service: string, { name, port, protocol }: BackendPort): boolean {
    const used = usedPorts.get(service);
    return protocol === 'TCP' && (used?.has(port) === true || used?.has(name) === true);
  }
}
