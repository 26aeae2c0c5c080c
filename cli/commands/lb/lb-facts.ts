import type { IngressRule } from '../../../cloud/cloud.ts';
import type { Listener } from '../../../cloud/listeners.ts';
import type { LoadBalancer } from '../../../cloud/load-balancers.ts';
import type { Target, TargetHealth } from '../../../cloud/targets.ts';
import type { CcmNode } from '../../../cloud-controller-manager/controller/ccm-node.ts';
import type { BackendPod } from '../../../cloud-controller-manager/services/backend-pod.ts';
import type { EndpointSlice } from '../../../cloud-controller-manager/services/endpoint-slice.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

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

/** The security groups of load balancers and targets. */
export type GroupFacts = {
  readonly ofEni: ReadonlyMap<string, readonly string[]>;
  /** Of the primary ENI. */
  readonly ofInstance: ReadonlyMap<string, readonly string[]>;
  /** The instance by whose primary ENI an address is reached. */
  readonly instanceOf: ReadonlyMap<string, string>;
  readonly rules: ReadonlyMap<string, readonly IngressRule[]>;
};

/** What `lb` was read from. */
export type LbFacts = {
  readonly services: readonly KubeObject[];
  readonly nodes: Known<readonly CcmNode[]>;
  readonly pods: Known<readonly BackendPod[]>;
  readonly slices: Known<readonly EndpointSlice[]>;
  readonly cloud: Known<LbCloud>;
  /** Unknown also where the cloud is. */
  readonly groups: Known<GroupFacts>;
  /** Undefined: not given, and in no tag. */
  readonly clusterId: string | undefined;
  readonly vpcId: string | undefined;
  readonly loadBalancerClass: string;
};
