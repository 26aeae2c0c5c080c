import {
  boolean,
  type Decoder,
  integer,
  list,
  oneOf,
  optional,
  type RecordOf,
  record,
  required,
  text,
} from '../runtime/decode.ts';
import { anyIpAddress, cidr, ipAddress } from './ip-text.ts';

/** API group of all our resources. */
export const API_GROUP = 'networking.tke.cloud.tencent.com';
/** Group and version, as `apiVersion` has it. */
export const API_VERSION = `${API_GROUP}/v1`;

/** Annotations by which people set the warm targets of one node; they go before the spec. */
export const WARM_TARGET_ANNOTATION = {
  min: 'tke.cloud.tencent.com/route-eni-ip-min-warm-target',
  max: 'tke.cloud.tencent.com/route-eni-ip-max-warm-target',
} as const;

/** More than any instance type has; bounds what a wrong file makes us do. */
const MOST_ENIS = 64;
const MOST_IPS = 4096;

const id = text(/^[\w.:-]{1,253}$/, 'an id of letters, digits and . : _ -');
const epoch = integer(0, Number.MAX_SAFE_INTEGER);
const ipCount = integer(0, MOST_ENIS * MOST_IPS);

const mac: Decoder<string> = (value, path, faults) => {
  if (typeof value === 'string' && /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(value)) return value.toLowerCase();
  faults.add(path, 'a MAC address such as 20:90:6f:12:34:56', value);
  return undefined;
};

const RELEASABLE = { ip: required(anyIpAddress), assignmentID: required(id) };

/** The fields of `spec`. */
export const SPEC = {
  desiredRouteENIIP: optional(ipCount),
  releasableIPs: optional(list(record(RELEASABLE, 'ignore'))),
  observedSupplyEpoch: optional(epoch),
  maxRouteENI: optional(integer(0, MOST_ENIS)),
  maxIPPerENI: optional(integer(0, MOST_IPS)),
  routeENIIPMinWarmTarget: optional(ipCount),
  routeENIIPMaxWarmTarget: optional(ipCount),
  enableQuickRelease: optional(boolean),
  securityGroups: optional(list(id)),
};

/** The fields of an address of an ENI. */
export const ADDRESS = {
  ip: required(anyIpAddress),
  assignmentID: required(id),
  state: required(oneOf(['Assigned', 'Releasing'])),
  pairedIP: optional(anyIpAddress),
};

/** The fields of an ENI. */
export const ENI_INFO = {
  eniID: required(id),
  mac: required(mac),
  primaryIP: optional(ipAddress(4)),
  primaryIPv6: optional(ipAddress(6)),
  gateway: optional(ipAddress(4)),
  gatewayIPv6: optional(ipAddress(6)),
  subnetCIDR: optional(cidr(4)),
  subnetIPv6CIDR: optional(cidr(6)),
  deviceIndex: optional(integer(0, MOST_ENIS)),
  state: required(oneOf(['Attaching', 'Attached', 'Detaching'])),
  draining: optional(boolean),
  addresses: optional(list(record(ADDRESS, 'ignore'))),
};

/** The fields of `status`. */
export const STATUS = { supplyEpoch: optional(epoch), eniInfos: optional(list(record(ENI_INFO, 'ignore'))) };

const warmTarget: Decoder<number> = (value, path, faults) => {
  if (typeof value === 'string' && /^\d{1,5}$/.test(value)) return Number(value);
  faults.add(path, 'a whole number in quotes', value);
  return undefined;
};
const ANNOTATIONS = {
  [WARM_TARGET_ANNOTATION.min]: optional(warmTarget),
  [WARM_TARGET_ANNOTATION.max]: optional(warmTarget),
};
const METADATA = {
  name: required(text(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'the node name')),
  resourceVersion: optional(text()),
  annotations: optional(record(ANNOTATIONS, 'ignore')),
};

/** The fields of the whole object. */
export const NODE_ENI_CONFIG = {
  apiVersion: required(oneOf([API_VERSION])),
  kind: required(oneOf(['NodeENIConfig'])),
  metadata: required(record(METADATA, 'ignore')),
  spec: optional(record(SPEC, 'ignore')),
  status: optional(record(STATUS, 'ignore')),
};

/** One address of an ENI, as `status.eniInfos[].addresses[]` has it. */
export type NodeEniAddress = RecordOf<typeof ADDRESS>;
/** One ENI of a node. Each family has its primary address, gateway and subnet, or none of them. */
export type NodeEniInfo = RecordOf<typeof ENI_INFO>;
/** What the node wants: counts and offers are the agent's, the rest people's and policy's. */
export type NodeEniConfigSpec = RecordOf<typeof SPEC>;
/** What the node has: ipamd's. */
export type NodeEniConfigStatus = RecordOf<typeof STATUS>;
/** The whole object, as far as we know its fields. */
export type NodeEniConfigFields = RecordOf<typeof NODE_ENI_CONFIG>;
