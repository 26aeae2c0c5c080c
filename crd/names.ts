/** API group of all resources of this project. */
export const API_GROUP = 'networking.tke.cloud.tencent.com';
/** The only version so far. */
export const VERSION = 'v1';
/** Group and version, as in `apiVersion`. */
export const API_VERSION = `${API_GROUP}/${VERSION}`;

const PREFIX = 'tke.cloud.tencent.com';

/** Annotations of a NodeENIConfig that set the pools and limits of one node. */
export const NODE_ENI_CONFIG_ANNOTATION = {
  routeMinWarm: `${PREFIX}/route-eni-ip-min-warm-target`,
  routeMaxWarm: `${PREFIX}/route-eni-ip-max-warm-target`,
  directMinWarm: `${PREFIX}/direct-eni-min-warm-target`,
  directMaxWarm: `${PREFIX}/direct-eni-max-warm-target`,
  routeMaxAttach: `${PREFIX}/route-eni-max-attach`,
  maxIpPerEni: `${PREFIX}/max-ip-per-route-eni`,
  directMaxAttach: `${PREFIX}/direct-eni-max-attach`,
} as const;

/** Annotations of a Node that ipamd reads. */
export const NODE_ANNOTATION = {
  /** Least number of addresses that stay assigned to the node. */
  desiredPodNum: `${PREFIX}/desired-route-eni-pod-num`,
  /** `true`: the ENIs of the node are drained and detached, and it gets no new ones. */
  disableEni: `${PREFIX}/disable-node-eni`,
  /** `yes`: the security groups of its ENIs are cleared; `no`: they are bound again as configured. */
  disableSecurityGroups: `${PREFIX}/disable-node-eni-security-groups`,
  /** `true`: the security groups of its ENIs are set again; ipamd removes the annotation when that is done. */
  syncSecurityGroups: `${PREFIX}/need-sync-security-groups`,
  /** Who wrote `spec.podCIDR`, in the same write: ipamd. A block without it has another writer. */
  podCidrBy: `${PREFIX}/pod-cidr-by`,
} as const;

/** Label of a Node: the subnets of its shared ENIs, joined by `_` or `.`. */
export const NODE_SUBNETS_LABEL = `${PREFIX}/route-eni-subnet-ids`;

/**
 * Label of a Node: `true` or `false`, whether its Pods may have static addresses; without it `--enable-static-ip`
 * decides.
 */
export const NODE_STATIC_IP_LABEL = `${PREFIX}/static-ip`;

/** Label of a Node: `true` or `false`, whether it serves exclusive ENIs; without it `--enable-direct-eni` decides. */
export const NODE_DIRECT_ENI_LABEL = `${PREFIX}/enable-direct-eni`;

/**
 * Label of a Node: `crd` when Cilium runs there with `ipam=crd` and gets its addresses from ipamd, by the CiliumNode of
 * the same name. ipamd writes no other CiliumNode.
 */
export const NODE_CILIUM_IPAM_LABEL = `${PREFIX}/cilium-ipam`;

/** Label of a VpcENI: the zone of its subnet, by the cloud's name. An ENI never changes its zone. */
export const ENI_ZONE_LABEL = `${PREFIX}/zone`;

/**
 * Annotation of a Node: its instance, as VPC/INSTANCE, once the cloud has described it. The cloud controller manager
 * writes it, and deletes no Node without it whose instance it has not described itself.
 */
export const NODE_SEEN_INSTANCE_ANNOTATION = `${PREFIX}/seen-instance`;

/** Annotations of a Service of type LoadBalancer, beside those of TKE. */
export const SERVICE_ANNOTATION = {
  /** `true`, written by a person: a change that needs another load balancer is made, and the address changes. */
  allowAddressChange: `${PREFIX}/allow-address-change`,
  /** The address or the domain of the load balancer; written by the service controller. */
  address: `${PREFIX}/load-balancer-address`,
  /** Written by a person: the pool of load balancers that the Service shares. */
  pool: `${PREFIX}/load-balancer-pool`,
  /** Written by a person: whether the ports on a load balancer of a pool are those of the Service. */
  poolPorts: `${PREFIX}/load-balancer-pool-ports`,
  /** How the load balancer was made, as JSON; written by the service controller before it is made. */
  record: `${PREFIX}/load-balancer-record`,
} as const;

/** TKE's annotation of a Service: `true` makes its Pods the backends of its load balancer, by their own addresses. */
export const DIRECT_ACCESS_ANNOTATION = 'service.cloud.tencent.com/direct-access';

/** TKE's readiness gate and condition of a Pod: whether it is a registered, healthy backend of its load balancers. */
export const BACKEND_READY_GATE = 'cloud.tencent.com/load-balancer-backendgroup-ready';

/** Label of a Pod or a namespace: `disabled` keeps readiness gate and preStop sleep of load balancers away. */
export const BACKEND_GATE_LABEL = `${PREFIX}/load-balancer-gate`;

/** Annotation of a Node: `false` keeps it out of the backends of all load balancers. */
export const NODE_BACKEND_ANNOTATION = `${PREFIX}/load-balancer-backend`;

/** Label of a Node: the id of its instance. */
export const NODE_INSTANCE_LABEL = 'cloud.tencent.com/node-instance-id';

/**
 * Annotation of a NodeENIConfig: the values that ipamd last wrote to the policy fields of its spec, as JSON. ipamd may
 * change a field that still has this value. Any other value was set by a user and stays.
 */
export const APPLIED_POLICY_ANNOTATION = `${PREFIX}/applied-policy`;

/**
 * Annotation of a NodeENIConfig: since when ipamd may release what the node has, RFC 3339. ipamd writes it when the Node
 * or the instance is gone by the word of one source only, and removes it when both are back.
 */
export const RELEASE_BEGUN_ANNOTATION = `${PREFIX}/release-begun`;

/**
 * Annotation of a NodeENIConfig: `true` confirms that a node that is missing is gone, so that ipamd releases what it
 * has. ipamd removes it from a node that is there.
 */
export const ALLOW_RELEASE_ANNOTATION = `${PREFIX}/allow-release`;

/**
 * Annotation of the lock of ipamd, and of that of the cloud controller manager: how many releases or deletions of nodes
 * began within the last hour, so that the next leader counts them. JSON, see `ReleaseRecord`.
 */
export const RELEASES_ANNOTATION = `${PREFIX}/releases`;

/** Annotation of the lock of the cloud controller manager: the VPC that was found without `--vpc-id`, for the next leader. */
export const CLUSTER_VPC_ANNOTATION = `${PREFIX}/cluster-vpc`;

/** Taint that repels Pods from a VPC-CNI node until its agent serves addresses. */
export const ENI_IP_TAINT = { key: `${PREFIX}/eni-ip-unavailable`, value: 'true', effect: 'NoSchedule' } as const;

/** Taint that repels Pods from a node with exclusive ENIs until its agent serves them. */
export const DIRECT_ENI_TAINT = {
  key: `${PREFIX}/direct-eni-unavailable`,
  value: 'true',
  effect: 'NoSchedule',
} as const;

/**
 * Key of a taint that node pools put on new nodes and that ipamd removes by default (`--startup-taints`). Its prefix tells
 * cluster-autoscaler that the node is coming.
 */
export const STARTUP_TAINT_KEY = 'startup-taint.cluster-autoscaler.kubernetes.io/eni-ip-unavailable';

/** Condition of a Node that has no addresses available. */
export const ENI_IP_CONDITION = 'ENIIPUnavailable';

/** Condition of a Node whose agent the API server refuses what Pods need, or does not answer well for long. The agent writes it, ipamd the others. */
export const AGENT_REFUSED_CONDITION = 'ENIAgentRefused';

/** Condition of a Node that is to serve exclusive ENIs and does not. */
export const DIRECT_ENI_CONDITION = 'DirectENIUnavailable';

/** How long a static address is retained after its Pod: on Pods, VpcIPs and VpcENIs; a Go duration. */
export const CLAIM_EXPIRED_DURATION_ANNOTATION = `${PREFIX}/claim-expired-duration`;

/** Annotation of the ConfigMap ip-masq-agent-config: the entries that ipamd added, separated by commas. */
export const EIP_SRC_CIDRS_ANNOTATION = `${PREFIX}/eip-src-cidrs`;

/** Annotation of the ConfigMap tke-eni-subnets: the ConfigMap that it was made from, and a digest of its content. */
export const SUBNETS_SOURCE_ANNOTATION = `${PREFIX}/subnets-from`;

/** Label of a VpcIP and VpcENI: the node that it is on. */
export const NODE_NAME_LABEL = `${PREFIX}/node-name`;

/** Finalizer of an object until ipamd has released its cloud resources. */
export const CLOUD_FINALIZER = `${API_GROUP}/cloud-resources`;

/** Delays the deletion of a Service until its load balancer is gone. It is upstream's. */
export const SERVICE_FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

/** Delays the deletion of an Ingress until its load balancer is gone. */
export const INGRESS_FINALIZER = `${API_GROUP}/load-balancer-cleanup`;

/**
 * Label of VpcIPs and VpcIPClaims that are records of Pods, for people to read: ipamd writes and deletes those with the
 * label as records, and no others. Those without it belong to static addresses.
 */
export const RECORD_LABEL = { key: `${PREFIX}/record`, value: 'pod' } as const;

/** Annotation of a VpcIPClaim: when the scheduler wrote `spec.nodeName`; RFC 3339. */
export const RESERVED_AT_ANNOTATION = `${PREFIX}/reserved-at`;

/** Annotation of a NodeENIConfig: the name of the agent's journal. It shows which agent of the node wrote the object last. */
export const AGENT_LIFE_ANNOTATION = `${PREFIX}/agent-life`;

/** Annotations of Pods. */
export const POD_ANNOTATION = {
  /** The network of a Pod: `tke-route-eni`, `tke-direct-eni` or `tke-bridge`. */
  networks: `${PREFIX}/networks`,
  /**
   * `Never`: the Pod's address is static, so the next Pod of the same name gets it. `Immediate`, the default: it is
   * not.
   */
  deletePolicy: `${PREFIX}/vpc-ip-claim-delete-policy`,
  /** How long a static address is retained without a Pod; a Go duration of at least 5 minutes, 0s: forever. */
  claimExpiredDuration: CLAIM_EXPIRED_DURATION_ANNOTATION,
  /** The address that the Pod requests. */
  nominatedVpcIp: `${PREFIX}/nominated-vpc-ip`,
  /** The only subnets that the Pod accepts, separated by commas. */
  nominatedSubnets: `${PREFIX}/nominated-eni-subnets`,
  /** Requests a new EIP; JSON, or empty for the defaults. */
  eipAttributes: `${PREFIX}/eip-attributes`,
  /** `Never`: the EIP is retained for the next Pod of the same name. */
  eipDeletePolicy: `${PREFIX}/eip-claim-delete-policy`,
  /** Existing EIPs, separated by commas, selected by the ordinal at the end of the Pod's name. */
  eipIdList: `${PREFIX}/eip-id-list`,
  /** The address of the bound EIP; written by ipamd. */
  eipPublicIp: `${PREFIX}/eip-public-ip`,
  /** Security groups of an exclusive ENI, separated by commas, in order of precedence. */
  securityGroups: `${PREFIX}/pod-security-groups`,
  /** How long containers without a preStop hook serve on before SIGTERM; a Go duration in whole seconds. */
  preStopSleep: `${PREFIX}/pre-stop-sleep`,
  /** The static address of a Pod on a super node, as JSON with the Pod's uid; written by ipamd. */
  vpcIpAllocation: `${PREFIX}/vpc-ip-allocation`,
} as const;

/** Extended resource: an address of a shared ENI. */
export const ENI_IP_RESOURCE = `${PREFIX}/eni-ip`;
/** Extended resource: an exclusive ENI. */
export const DIRECT_ENI_RESOURCE = `${PREFIX}/direct-eni`;
/** Extended resource: a public address. */
export const EIP_RESOURCE = `${PREFIX}/eip`;

/** Extended resource of the product: an interface on a trunk ENI. Nothing here serves it: the cloud has no public API for it. */
export const SUB_ENI_RESOURCE = `${PREFIX}/sub-eni`;

/** Extended resources that the agent registers with the kubelet. */
export const EXTENDED_RESOURCES = [ENI_IP_RESOURCE, DIRECT_ENI_RESOURCE, EIP_RESOURCE] as const;
