import { openInformer } from '../../kube/informer.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import { SERVICES } from '../../kube/resource-types.ts';
import { BackendNodes } from '../backends/backend-nodes.ts';
import { decideBackendNode } from '../backends/decide-backend-node.ts';
import { PodFollower } from '../backends/follow-pods.ts';
import { readPodNode } from '../backends/pod-node.ts';
import { ListenerMemory } from '../balancers/listener-memory.ts';
import { OWNER_BOUNDS } from '../balancers/owner-bounds.ts';
import { AddressPublisher } from '../balancers/publish-addresses.ts';
import { StartOrder } from '../balancers/start-order.ts';
import { sweepOrphanBalancers } from '../balancers/sweep-orphan-balancers.ts';
import { TargetQuota } from '../balancers/target-quota.ts';
import type { CcmNode } from '../controller/ccm-node.ts';
import type { ControllerDeps, ReportWaiting } from '../controller/controller-deps.ts';
import { IngressController } from '../ingresses/ingress-controller.ts';
import { readCloudNode } from '../nodes/cloud-node.ts';
import { ConfigFollower } from '../service-configs/follow-configs.ts';
import { GateKeeper } from '../services/keep-gates.ts';
import { ServiceController } from '../services/service-controller.ts';
import { TkeControllerWatch } from '../services/tke-controller-watch.ts';

/**
 * Keeps the load balancers of Services, and with --ingress=clb of Ingresses, until aborted. What both depend on is read
 * once: Services, Nodes, Pods, quotas; so are readiness gates and published addresses kept once. Faults of the cloud and of
 * the API server are reported and tried again.
 */
export async function runLoadBalancing(
  deps: ControllerDeps,
  signal: AbortSignal,
  reportWaiting: ReportWaiting,
): Promise<void> {
  const { kube: client, clock, log, random, metrics, config } = deps;
  const services = openInformer({
    ...{ client, clock, log, random, observer: metrics.informer },
    type: SERVICES,
    decode: withoutManagedFields,
    bounds: OWNER_BOUNDS,
  });
  const other = new TkeControllerWatch(deps, services, reportWaiting);
  const mayAct = (): boolean => !other.isPresent;
  const nodes = new BackendNodes(deps);
  const pods = new PodFollower(deps, () => gates.notify());
  const gates: GateKeeper = new GateKeeper(deps, () => kept.map(({ direct }) => direct), pods);
  const published = new AddressPublisher(deps, {
    nodesByIp: () => pods.nodesByIp(new Set(sourcesOf().flatMap(({ boundServices }) => boundServices()))),
    nodeIps: () => nodes.boundIps,
    hasUnknown: (isKnown) => sourcesOf().some(({ kind, hasUnknown }) => hasUnknown((key) => isKnown({ kind, key }))),
    // They are asked for with the rights to Pods.
    mayRead: () => pods.isSynced,
  });
  const configs = new ConfigFollower(deps, (key) => {
    for (const one of kept) one.configChanged(key);
  });
  const memory = new ListenerMemory();
  const [quota, order] = [new TargetQuota(deps), new StartOrder(deps, pods)];
  const shared = { services, nodes, pods, quota, configs, gates, published, memory, mayAct, order };
  const ofServices = new ServiceController(deps, shared);
  const ofIngresses = config.ingress === 'clb' ? new IngressController(deps, shared) : undefined;
  const kept = ofIngresses === undefined ? [ofServices] : [ofServices, ofIngresses];
  const sourcesOf = () => kept.map(({ addresses }) => addresses);
  const changed = (): void => {
    for (const one of kept) one.changed();
  };
  const stopNodes = deps.nodes.subscribe(({ before, after }) => {
    if (roleOf(before) === roleOf(after)) return;
    nodes.changed();
    changed();
  });
  const stopInstances = deps.instances.subscribe(() => {
    nodes.changed();
    changed();
  });
  const following = Promise.all([services.start(signal), pods.run(signal), configs.run(signal)]);
  try {
    await services.synced(signal);
    await other.look(signal);
    const takeOver = (): void => {
      for (const one of kept) one.takeOver();
    };
    const runOthers = async (): Promise<void> => {
      await deps.instances.ready(signal);
      await Promise.all([
        other.run(takeOver, signal),
        sweepOrphanBalancers(deps, services, ofIngresses?.ingresses, mayAct, signal),
        gates.run(mayAct, signal),
        published.run(signal),
      ]);
    };
    await Promise.all([ofServices.run(signal), ofIngresses?.run(signal), runOthers()]);
  } finally {
    stopNodes();
    stopInstances();
    await following;
  }
}

/** What load balancers depend on of a Node. */
function roleOf(node: CcmNode | undefined): string {
  if (node === undefined) return '';
  const read = readCloudNode(node);
  const { providerIdText, addresses, isSilent, isLeaving } = read;
  const identity = [providerIdText, addresses, isSilent, isLeaving];
  return JSON.stringify([decideBackendNode(read, undefined), readPodNode(node), identity]);
}
