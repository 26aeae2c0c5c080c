/** API group of all our resources. */
export const API_GROUP = 'networking.tke.cloud.tencent.com';
/** The only version so far. */
export const VERSION = 'v1';
/** Group and version, as `apiVersion` has it. */
export const API_VERSION = `${API_GROUP}/${VERSION}`;

const PREFIX = 'tke.cloud.tencent.com';

/** Annotations of a NodeENIConfig by which people set one node's pools and limits. */
export const NODE_ENI_CONFIG_ANNOTATION = {
  routeMinWarm: `${PREFIX}/route-eni-ip-min-warm-target`,
  routeMaxWarm: `${PREFIX}/route-eni-ip-max-warm-target`,
  directMinWarm: `${PREFIX}/direct-eni-min-warm-target`,
  directMaxWarm: `${PREFIX}/direct-eni-max-warm-target`,
  routeMaxAttach: `${PREFIX}/route-eni-max-attach`,
  maxIpPerEni: `${PREFIX}/max-ip-per-route-eni`,
  directMaxAttach: `${PREFIX}/direct-eni-max-attach`,
} as const;

/** Annotations of a Node that ipamd follows. */
export const NODE_ANNOTATION = {
  /** Never fewer addresses than this are kept bound. */
  desiredPodNum: `${PREFIX}/desired-route-eni-pod-num`,
  /** `true`: its ENIs are drained and taken off, and it gets no new ones. */
  disableEni: `${PREFIX}/disable-node-eni`,
  /** `yes`: the security groups of its ENIs are cleared; `no`: bound again as configured. */
  disableSecurityGroups: `${PREFIX}/disable-node-eni-security-groups`,
  /** `true`: its ENIs get their security groups anew; ipamd takes the annotation off when that is done. */
  syncSecurityGroups: `${PREFIX}/need-sync-security-groups`,
} as const;

/** Label of a Node: the subnets of its shared ENIs, joined by `_` or `.`. */
export const NODE_SUBNETS_LABEL = `${PREFIX}/route-eni-subnet-ids`;

/** Label of a Node: `true` or `false`, whether its Pods may keep their addresses; without it `--enable-static-ip` says. */
export const NODE_STATIC_IP_LABEL = `${PREFIX}/static-ip`;

/** Label of a Node: `true` or `false`, whether it serves exclusive ENIs; without it `--enable-direct-eni` says. */
export const NODE_DIRECT_ENI_LABEL = `${PREFIX}/enable-direct-eni`;

/** Label of a VpcENI: the zone of its subnet, as the cloud names it; it never leaves it. */
export const ENI_ZONE_LABEL = `${PREFIX}/zone`;

/** Label of a Node: its instance. */
export const NODE_INSTANCE_LABEL = 'cloud.tencent.com/node-instance-id';

/**
 * Annotation of a NodeENIConfig: what ipamd last wrote to the policy fields of its spec, as JSON. A field that still says
 * so is ipamd's to change; another value is a person's, and stays.
 */
export const APPLIED_POLICY_ANNOTATION = `${PREFIX}/applied-policy`;

/** Taint that keeps Pods off a VPC-CNI node until its agent serves addresses. */
export const ENI_IP_TAINT = { key: `${PREFIX}/eni-ip-unavailable`, value: 'true', effect: 'NoSchedule' } as const;

/** Taint that keeps Pods off a node that serves exclusive ENIs until its agent does. */
export const DIRECT_ENI_TAINT = {
  key: `${PREFIX}/direct-eni-unavailable`,
  value: 'true',
  effect: 'NoSchedule',
} as const;

/** Condition of a Node that has no addresses to give. */
export const ENI_IP_CONDITION = 'ENIIPUnavailable';

/** How long a static address outlives its Pod: on Pods, VpcIPs and VpcENIs; a Go duration. */
export const CLAIM_EXPIRED_DURATION_ANNOTATION = `${PREFIX}/claim-expired-duration`;

/** Annotation of ConfigMap ip-masq-agent-config: the entries that ipamd put there, with commas. */
export const EIP_SRC_CIDRS_ANNOTATION = `${PREFIX}/eip-src-cidrs`;

/** Label of a VpcIP and VpcENI: the node that it is on. */
export const NODE_NAME_LABEL = `${PREFIX}/node-name`;

/** Keeps an object until ipamd has given back what the cloud holds for it. */
export const CLOUD_FINALIZER = `${API_GROUP}/cloud-resources`;

/** Annotations of Pods. */
export const POD_ANNOTATION = {
  /** Which network plugins: `tke-route-eni`, `tke-direct-eni`, `tke-bridge`, or a list. */
  networks: `${PREFIX}/networks`,
  /** `Never`: the Pod's address is kept for the next Pod of its name. `Immediate`, the default: it is not. */
  deletePolicy: `${PREFIX}/vpc-ip-claim-delete-policy`,
  /** How long a kept address waits for its Pod; a Go duration of at least 5 minutes, 0s: for ever. */
  claimExpiredDuration: CLAIM_EXPIRED_DURATION_ANNOTATION,
  /** The address that the Pod asks for. */
  nominatedVpcIp: `${PREFIX}/nominated-vpc-ip`,
  /** The only subnets that the Pod accepts, with commas. */
  nominatedSubnets: `${PREFIX}/nominated-eni-subnets`,
  /** An EIP is made and bound; JSON, or '' for the defaults. */
  eipAttributes: `${PREFIX}/eip-attributes`,
  /** `Never`: the EIP is kept for the next Pod of this name. */
  eipDeletePolicy: `${PREFIX}/eip-claim-delete-policy`,
  /** Existing EIPs, with commas, chosen by the ordinal at the end of the Pod's name. */
  eipIdList: `${PREFIX}/eip-id-list`,
  /** The bound EIP's address; written by ipamd. */
  eipPublicIp: `${PREFIX}/eip-public-ip`,
  /** Security groups of an exclusive ENI, with commas, in order of precedence. */
  securityGroups: `${PREFIX}/pod-security-groups`,
} as const;

/** Extended resource: an address of a shared ENI. */
export const ENI_IP_RESOURCE = `${PREFIX}/eni-ip`;
/** Extended resource: an exclusive ENI. */
export const DIRECT_ENI_RESOURCE = `${PREFIX}/direct-eni`;
/** Extended resource: a public address. */
export const EIP_RESOURCE = `${PREFIX}/eip`;

/** Extended resources that the agent registers with the kubelet. */
export const EXTENDED_RESOURCES = [ENI_IP_RESOURCE, DIRECT_ENI_RESOURCE, EIP_RESOURCE] as const;
