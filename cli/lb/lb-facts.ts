import type { Listener } from '../../cloud/listeners.ts';
import type { LoadBalancer } from '../../cloud/load-balancers.ts';
import type { Target, TargetHealth } from '../../cloud/targets.ts';
import type { CcmNode } from '../../cloud-controller-manager/ccm-node.ts';
import type { BackendPod } from '../../cloud-controller-manager/services/backend-pod.ts';
import type { EndpointSlice } from '../../cloud-controller-manager/services/endpoint-slice.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { Known } from '../node/node-facts.ts';

/** A load balancer with what it has. */
export type BalancerFacts = {
  readonly balancer: LoadBalancer;
  /** All, those of others too. */
  readonly listeners: readonly Listener[];
  /** Of the listeners of Services. */
  readonly targets: readonly Target[];
  readonly health: readonly TargetHealth[];
};

/** What the cloud has for the cluster. */
export type LbCloud = {
  readonly balancers: readonly BalancerFacts[];
  /** Most targets of a listener; absent: the cloud does not say it. */
  readonly maxTargets?: number;
};

/** What `lb` was read from. */
export type LbFacts = {
  readonly services: readonly KubeObject[];
  readonly nodes: Known<readonly CcmNode[]>;
  readonly pods: Known<readonly BackendPod[]>;
  readonly slices: Known<readonly EndpointSlice[]>;
  readonly cloud: Known<LbCloud>;
  /** Undefined: not given, and in no tag. */
  readonly clusterId: string | undefined;
  readonly vpcId: string | undefined;
  readonly loadBalancerClass: string;
};
