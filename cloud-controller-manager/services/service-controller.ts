import { type ReconcileResult, runController } from '../../kube/controller.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { withoutManagedFields } from '../../kube/managed-fields.ts';
import { SERVICES } from '../../kube/resource-types.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import type { BackoffSettings } from '../../runtime/backoff.ts';
import type { CcmNode } from '../controller/ccm-node.ts';
import type { ControllerDeps, ReportWaiting } from '../controller/controller-deps.ts';
import { readCloudNode } from '../nodes/cloud-node.ts';
import { readSeen } from '../nodes/seen-instance.ts';
import { decideBackendNode } from './decide-backend-node.ts';
import { decideService } from './decide-service.ts';
import { PodFollower } from './follow-pods.ts';
import { GateKeeper } from './keep-gates.ts';
import { readPodNode } from './pod-node.ts';
import { AddressPublisher } from './publish-addresses.ts';
import { readAnnotations } from './read-annotations.ts';
import { readRecord } from './read-record.ts';
import { readServiceHead } from './read-service.ts';
import { ServiceSync } from './service-sync.ts';
import { OrphanSweep } from './sweep-orphan-balancers.ts';
import { TkeControllerWatch } from './tke-controller-watch.ts';

/** Services that are worked on at once. Changes of one load balancer wait for each other in the cloud. */
const WORKERS = 128;
/** Nodes that come and go together are one change of each load balancer. */
const GATHER_MS = 2_000;
/** Pods that become ready together are one change; one that ends is none that waits. */
const GATHER_PODS_MS = 1_000;
/** Upstream's delays. */
const BACKOFF: BackoffSettings = { firstMs: 5_000, maxMs: 300_000, factor: 2, jitter: 0.3 };

/**
 * Keeps a load balancer for each Service of type LoadBalancer, with Nodes or Pods as its backends, until aborted. Faults of the
 * cloud and of the API server are reported and tried again.
 */
export async function runServiceController(
  deps: ControllerDeps,
  signal: AbortSignal,
  reportWaiting: ReportWaiting,
): Promise<void> {
  const { kube: client, clock, log, random, nodes, metrics } = deps;
  const services = openInformer({
    client,
    type: SERVICES,
    decode: withoutManagedFields,
    clock,
    log,
    random,
    observer: metrics.informer,
  });
  const queue = new WorkQueue({ clock, random, backoff: BACKOFF });
  const pods = new PodFollower(deps, {
    onEndpoints: (key, isUrgent) => {
      if (isUrgent) queue.addFirst(key);
      else queue.addAfter(key, GATHER_PODS_MS);
    },
    onGate: () => gates.notify(),
  });
  const gates = new GateKeeper(deps, services, pods);
  /** Whether the Pods of a Service are bound by their addresses. */
  const bindsPods = (service: KubeObject): boolean => {
    const head = readServiceHead(service);
    const { settings } = readAnnotations(head.annotations, head.labels);
    return settings.directAccess === true && decideService(head, deps.config.loadBalancerClass) === 'serve';
  };
  /** Whether a Service has a load balancer that is read. One with mode skip keeps its targets. */
  const mayHaveTargets = (service: KubeObject): boolean => {
    const head = readServiceHead(service);
    return (
      readRecord(head).loadBalancerId !== undefined && decideService(head, deps.config.loadBalancerClass) !== 'ignore'
    );
  };
  const published = new AddressPublisher(deps, {
    nodesByIp: () => pods.nodesByIp([...services.values()].filter(bindsPods).map(keyOf)),
    bindsPods: (key) => {
      const service = services.get(key);
      return service !== undefined && bindsPods(service);
    },
    hasUnknown: (isKnown) =>
      [...services.values()].some((service) => mayHaveTargets(service) && !isKnown(keyOf(service))),
    // They are asked for with the rights to Pods.
    mayRead: () => pods.isSynced,
  });
  const sync = new ServiceSync(deps, services, pods, gates, published);
  const stopServices = services.subscribe(({ key }) => {
    queue.add(key);
    gates.notify();
  });
  const stopNodes = nodes.subscribe(({ before, after }) => {
    if (roleOf(before) === roleOf(after)) return;
    sync.nodesChanged();
    for (const key of services.keys()) queue.addAfter(key, GATHER_MS);
  });
  const following = Promise.all([services.start(signal), pods.run(signal)]);
  const other = new TkeControllerWatch(deps, services, reportWaiting);
  const sweep = new OrphanSweep(deps, services, () => !other.isPresent);
  try {
    await services.synced(signal);
    await other.look(signal);
    const reconcile = async (key: string, ended: AbortSignal): Promise<ReconcileResult> =>
      other.isPresent ? { kind: 'done' } : await sync.reconcile(key, ended);
    const name = 'service-lb-controller';
    const onGone = (): void => {
      for (const key of services.keys()) queue.add(key);
    };
    const options = { name, queue, workers: WORKERS, reconcile, clock, log, observer: metrics.controller };
    await Promise.all([
      runController(options, signal),
      other.run(onGone, signal),
      sweep.run(signal),
      gates.run(() => !other.isPresent, signal),
      published.run(signal),
    ]);
  } finally {
    stopNodes();
    stopServices();
    queue.close();
    await following;
    sync.close();
  }
}

/** What load balancers depend on of a Node. */
function roleOf(node: CcmNode | undefined): string {
  if (node === undefined) return '';
  const read = readCloudNode(node);
  return JSON.stringify([decideBackendNode(read, undefined), readPodNode(node), readSeen(read)?.vpcId]);
}

function keyOf(service: KubeObject): string {
  return readServiceHead(service).key;
}
