import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { BackoffSettings } from '../../runtime/backoff.ts';
import type { BackendNodes } from '../backends/backend-nodes.ts';
import type { PodFollower } from '../backends/follow-pods.ts';
import type { ListenerMemory } from '../balancers/listener-memory.ts';
import type { AddressPublisher } from '../balancers/publish-addresses.ts';
import type { StartOrder } from '../balancers/start-order.ts';
import type { TargetQuota } from '../balancers/target-quota.ts';
import type { ConfigFollower } from '../service-configs/follow-configs.ts';
import type { GateKeeper } from './keep-gates.ts';

/** What the controllers of Services and of Ingresses share. */
export type SharedParts = {
  readonly services: Informer<KubeObject>;
  readonly nodes: BackendNodes;
  readonly pods: PodFollower;
  readonly quota: TargetQuota;
  readonly configs: ConfigFollower;
  readonly gates: GateKeeper;
  readonly published: AddressPublisher;
  readonly memory: ListenerMemory;
  /** Whether this program keeps load balancers now: another one may. */
  readonly mayAct: () => boolean;
  readonly order: StartOrder;
};

/** Changes that come together, as of Nodes, are one change of each load balancer; milliseconds. */
export const GATHER_MS = 2_000;

/** Pods that become ready together are one change; one that ends is none that waits. Milliseconds. */
export const GATHER_PODS_MS = 1_000;

/** Upstream's delays of Services. */
export const OWNER_BACKOFF: BackoffSettings = { firstMs: 5_000, maxMs: 300_000, factor: 2, jitter: 0.3 };
