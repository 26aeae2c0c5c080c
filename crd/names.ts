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

/** How long a static address outlives its Pod: on Pods, VpcIPs and VpcENIs; a Go duration. */
export const CLAIM_EXPIRED_DURATION_ANNOTATION = `${PREFIX}/claim-expired-duration`;

/** Label of a VpcIP and VpcENI: the node that it is on. */
export const NODE_NAME_LABEL = `${PREFIX}/node-name`;

/** Keeps an object until ipamd has given back what the cloud holds for it. */
export const CLOUD_FINALIZER = `${API_GROUP}/cloud-resources`;

/** Extended resources that the agent registers with the kubelet. */
export const EXTENDED_RESOURCES = [`${PREFIX}/eni-ip`, `${PREFIX}/direct-eni`] as const;
