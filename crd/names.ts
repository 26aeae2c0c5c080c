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

/** Label of a Node: its instance. */
export const NODE_INSTANCE_LABEL = 'cloud.tencent.com/node-instance-id';

/**
 * Annotation of a NodeENIConfig: what ipamd last wrote to the policy fields of its spec, as JSON. A field that still says
 * so is ipamd's to change; another value is a person's, and stays.
 */
export const APPLIED_POLICY_ANNOTATION = `${PREFIX}/applied-policy`;

/** Taint that keeps Pods off a VPC-CNI node until its agent serves addresses. */
export const ENI_IP_TAINT = { key: `${PREFIX}/eni-ip-unavailable`, value: 'true', effect: 'NoSchedule' } as const;

/** Condition of a Node that has no addresses to give. */
export const ENI_IP_CONDITION = 'ENIIPUnavailable';

/** How long a static address outlives its Pod: on Pods, VpcIPs and VpcENIs; a Go duration. */
export const CLAIM_EXPIRED_DURATION_ANNOTATION = `${PREFIX}/claim-expired-duration`;

/** Label of a VpcIP and VpcENI: the node that it is on. */
export const NODE_NAME_LABEL = `${PREFIX}/node-name`;

/** Keeps an object until ipamd has given back what the cloud holds for it. */
export const CLOUD_FINALIZER = `${API_GROUP}/cloud-resources`;

/** Extended resources that the agent registers with the kubelet. */
export const EXTENDED_RESOURCES = [`${PREFIX}/eni-ip`, `${PREFIX}/direct-eni`] as const;
