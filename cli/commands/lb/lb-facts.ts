import type { IngressRule } from '../../../cloud/cloud.ts';
import type { Listener } from '../../../cloud/listeners.ts';
import type { LoadBalancer } from '../../../cloud/load-balancers.ts';
import type { Rewrite } from '../../../cloud/rewrites.ts';
import type { Target, TargetHealth } from '../../../cloud/targets.ts';
import type { BackendPod } from '../../../cloud-controller-manager/backends/backend-pod.ts';
import type { BackendPort } from '../../../cloud-controller-manager/backends/backend-port.ts';
import type { EndpointSlice } from '../../../cloud-controller-manager/backends/endpoint-slice.ts';
import type { CcmNode } from '../../../cloud-controller-manager/controller/ccm-node.ts';
import type { FoundConfig } from '../../../cloud-controller-manager/service-configs/choose-config.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

/** A load balancer with what it has. */
export type BalancerFacts = {
  readonly balancer: LoadBalancer;
  /** All, those of others too. */
  readonly listeners: readonly Listener[];
  /** Of the listeners of Services and Ingresses. */
  readonly targets: readonly Target[];
  readonly health: readonly TargetHealth[];
  /** All redirects; absent: no rule of an Ingress has one, or they were not asked for. */
  readonly rewrites?: readonly Rewrite[];
};

/** What the cloud has for the cluster. */
export type LbCloud = {
  readonly balancers: readonly BalancerFacts[];
  /** Most targets of a listener; absent: the cloud does not say it. */
  readonly maxTargets?: number;
  /** Most rules of a listener; absent: the cloud does not say it. */
  readonly maxRules?: number;
};

/** Ingresses, and what their plans are made of. Secrets are not read: with a certificate they have its key. */
export type IngressFacts = {
  /** Those that are asked about, and those that share a load balancer with one of them. */
  readonly ingresses: readonly KubeObject[];
  /** `spec.controller` of IngressClasses, by name. */
  readonly controllers: ReadonlyMap<string, string>;
  /** Ports of Services, by `namespace/name`. */
  readonly ports: ReadonlyMap<string, readonly BackendPort[] | 'external'>;
  /** Whether those without a class are served. */
  readonly servesWithoutClass: boolean;
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
  /** TkeServiceConfigs, by `namespace/name`. */
  readonly configs: Known<ReadonlyMap<string, FoundConfig>>;
  readonly cloud: Known<LbCloud>;
  /** Absent: they were not asked for. */
  readonly ingresses?: Known<IngressFacts>;
  /** Unknown also where the cloud is. */
  readonly groups: Known<GroupFacts>;
  /** Undefined: not given, and in no tag. */
  readonly clusterId: string | undefined;
  readonly vpcId: string | undefined;
  readonly loadBalancerClass: string;
};
