import { type Decoder, oneOf, optional, type RecordOf, record, required, text } from '../runtime/decode.ts';
import { CONDITIONS, claimMark, condition, eniMode, id } from './common-values.ts';
import { ownedBy, part } from './field.ts';
import { INTENTS, intent } from './intent.ts';
import { API_VERSION, EXTENDED_RESOURCES, NODE_ENI_CONFIG_ANNOTATION } from './names.ts';
import { readNodeSettings } from './node-eni-config-annotations.ts';
import { AGE_COLUMN, resourceKind } from './resource-kind.ts';
import {
  anyIp,
  choice,
  flag,
  growingNumber,
  instant,
  ipv4,
  ipv6,
  listOf,
  MAX_GROWTH,
  macAddress,
  network,
  objectOf,
  wholeNumber,
} from './value.ts';

/** Annotations that set the warm targets of one node; they take precedence over the spec. */
export const WARM_TARGET_ANNOTATION = {
  min: NODE_ENI_CONFIG_ANNOTATION.routeMinWarm,
  max: NODE_ENI_CONFIG_ANNOTATION.routeMaxWarm,
} as const;

/** More than any instance type has. These bounds limit the effect of a faulty object. */
const MAX_ENIS = 64;
const MAX_IPS = 4096;

const agent = ownedBy('agent');
const ipamd = ownedBy('ipamd');
const people = ownedBy('people');
const policy = ownedBy('policy');
const ccm = ownedBy('ccm');

const ipCount = wholeNumber(0, MAX_ENIS * MAX_IPS);
const eniCount = wholeNumber(0, MAX_ENIS);
const assignmentID = 'Changes whenever the address is given again: tells this assignment from an earlier one.';

const RELEASABLE = {
  ip: part.required(anyIp, 'The address, already withdrawn from use and past its cooldown.'),
  assignmentID: part.required(id, 'The assignment that is offered back, and no later one of the same address.'),
};
const RELEASABLE_ENI = {
  eniID: part.required(id, 'The exclusive ENI, withdrawn from use.'),
  assignmentID: part.required(id, 'The attachment that is offered back, and no later one of the same ENI.'),
};

const WARM_TARGETS_RULE = {
  rule: '!has(self.routeENIIPMinWarmTarget) || !has(self.routeENIIPMaxWarmTarget) || self.routeENIIPMinWarmTarget <= self.routeENIIPMaxWarmTarget',
  message: 'routeENIIPMinWarmTarget must not be above routeENIIPMaxWarmTarget',
};
const DIRECT_WARM_TARGETS_RULE = {
  rule: '!has(self.directENIMinWarmTarget) || !has(self.directENIMaxWarmTarget) || self.directENIMinWarmTarget <= self.directENIMaxWarmTarget',
  message: 'directENIMinWarmTarget must not be above directENIMaxWarmTarget',
};

/**
 * ipamd sets its epoch above the observed one. Without this rule a single wrong value would exhaust the range of
 * numbers.
 */
const OBSERVED_EPOCH_RULE = {
  rule: `!has(self.spec) || !has(self.spec.observedSupplyEpoch) || self.spec.observedSupplyEpoch - (has(self.status) && has(self.status.supplyEpoch) ? self.status.supplyEpoch : 0) <= ${MAX_GROWTH}`,
  message: `spec.observedSupplyEpoch may not be more than ${MAX_GROWTH} above status.supplyEpoch`,
};

/** The fields of `spec`. */
export const SPEC = {
  desiredRouteENIIP: agent.optional(ipCount, 'Addresses wanted: in use + cooling + warm target.'),
  releasableIPs: agent.optional(
    listOf(objectOf(RELEASABLE), { maxItems: MAX_IPS, keys: ['ip'] }),
    'Addresses that the node gives back, chosen so that the emptiest ENI empties first. ipamd marks one Releasing in a write guarded by the resourceVersion in which it still stood here; the agent uses one again only after its own guarded write took it out.',
  ),
  observedSupplyEpoch: agent.optional(
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
    'The status.supplyEpoch that the agent has acted upon. Above status.supplyEpoch: an old state was restored; ipamd describes the cloud again and raises its own above this.',
  ),
  readyResources: agent.optional(
    listOf(choice(EXTENDED_RESOURCES), { maxItems: EXTENDED_RESOURCES.length }),
    'Extended resources that the agent serves now. ipamd takes the taint <resource>-unavailable off the node while a resource is here, and with --enable-node-taint puts it on while it is not; the agent itself may only patch the node status.',
  ),
  desiredDirectENI: agent.optional(eniCount, 'Exclusive ENIs wanted: in use + cooling + warm target.'),
  releasableENIs: agent.optional(
    listOf(objectOf(RELEASABLE_ENI), { maxItems: MAX_ENIS, keys: ['eniID'] }),
    'Exclusive ENIs that the node gives back; the same hand-shake as releasableIPs.',
  ),
  maxRouteENI: policy.optional(eniCount, 'Most shared ENIs on the node. Not below what is in use.'),
  maxIPPerENI: policy.optional(wholeNumber(0, MAX_IPS), 'Most Pod addresses on one ENI, its primary not counted.'),
  maxDirectENI: policy.optional(
    eniCount,
    'Most exclusive ENIs on the node, kept ones included. Not below what is in use. Absent: the node serves none.',
  ),
  routeENIIPMinWarmTarget: policy.optional(ipCount, 'Spare addresses below which more are asked for; default 5.'),
  routeENIIPMaxWarmTarget: policy.optional(ipCount, 'Spare addresses above which some are given back; default 5.'),
  directENIMinWarmTarget: policy.optional(eniCount, 'Spare exclusive ENIs below which more are asked for; default 1.'),
  directENIMaxWarmTarget: policy.optional(eniCount, 'Spare exclusive ENIs above which some are given back; default 1.'),
  desiredRouteENIPodNum: policy.optional(
    ipCount,
    'Addresses that are kept bound at least, whatever the demand: from the Node annotation desired-route-eni-pod-num.',
  ),
  enableStaticIP: policy.optional(
    flag,
    'Pods of the node may keep their addresses. Absent: false. The agent then gives no address of the pool to a Pod that it cannot tell to be without a claim.',
  ),
  enableQuickRelease: policy.optional(flag, 'Give back all surplus every 2 minutes instead of one address.'),
  securityGroups: people.optional(
    listOf(id, { maxItems: MAX_ENIS }),
    "Security groups of the node's ENIs; the order is the priority; takes effect at once.",
  ),
  subnetIDs: people.optional(
    listOf(id, { maxItems: MAX_ENIS }),
    "Subnets for the node's new ENIs, of the node's zone; absent: the cluster's.",
  ),
};

/** The fields of an address of an ENI. */
export const ADDRESS = {
  ip: part.required(anyIp, 'The address.'),
  assignmentID: part.required(id, assignmentID),
  state: part.required(
    choice(['Assigned', 'Releasing']),
    'Releasing: the cloud is or will be asked to take it; serves no new Pod.',
  ),
  pairedIP: part.optional(anyIp, 'The address of the other family that a dual-stack Pod gets with it.'),
  claim: part.optional(
    claimMark,
    'Kept for the Pods of one name: it is none of the pool, and no other Pod gets it. Without a uid the agent offers it back as soon as no sandbox has it.',
  ),
};

/** The fields of an ENI. */
export const ENI_INFO = {
  eniID: part.required(id, "The cloud's id."),
  mac: part.required(macAddress, 'By this the agent finds the interface.'),
  mode: part.optional(eniMode, 'Shared by Pods (route-eni, also when absent) or handed to one Pod (direct-eni).'),
  name: part.optional(id, 'Its name in the cloud.'),
  primaryIP: part.optional(ipv4, "The ENI's own IPv4 address; no Pod gets it."),
  primaryIPv6: part.optional(ipv6, "The ENI's own IPv6 address; no Pod gets it."),
  gateway: part.optional(ipv4, "The subnet's IPv4 gateway."),
  gatewayIPv6: part.optional(ipv6, "The subnet's IPv6 gateway."),
  subnetID: part.optional(id, "The subnet's id."),
  subnetCIDR: part.optional(network(4), "The subnet's IPv4 network."),
  subnetIPv6CIDR: part.optional(network(6), "The subnet's IPv6 network."),
  deviceIndex: part.optional(eniCount, "The cloud's number of the interface on the instance; 0 is the primary."),
  attachType: part.optional(
    choice(['extension']),
    'Which places of the instance it uses, once it is attached or to be: those of the extension type, which exclusive ENIs alone use. Absent: standard ones.',
  ),
  assignmentID: part.optional(id, 'Changes with each attachment; what releasableENIs names.'),
  state: part.required(choice(['Attaching', 'Attached', 'Detaching']), 'Only an attached ENI serves new Pods.'),
  draining: part.optional(flag, 'Pods stay, no new ones come; detached when empty.'),
  securityGroups: part.optional(listOf(id, { maxItems: MAX_ENIS }), 'Its security groups as last seen, in order.'),
  clearedSecurityGroups: part.optional(
    listOf(id, { maxItems: MAX_ENIS }),
    'The security groups that it had before ipamd took them away; given back when nothing says any more which it should have.',
  ),
  claim: part.optional(claimMark, 'An exclusive ENI that is kept, or prepared, for the Pods of one name.'),
  addresses: part.optional(
    listOf(objectOf(ADDRESS), { maxItems: MAX_IPS, keys: ['ip'] }),
    'Its Pod addresses. Not those that the cloud is still giving.',
  ),
};

/** The fields of `status`. */
export const STATUS = {
  supplyEpoch: ipamd.optional(
    growingNumber('status.supplyEpoch'),
    'Grows with each change of eniInfos. The agent distrusts a number below one that it has seen.',
  ),
  eniInfos: ipamd.optional(
    listOf(objectOf(ENI_INFO), { maxItems: MAX_ENIS, keys: ['eniID'] }),
    'The ENIs of the node. Absent or null: none.',
  ),
  intents: ipamd.optional(
    listOf(intent, INTENTS),
    'Cloud calls under way for this node: recorded before they are made, removed with their result.',
  ),
  instanceID: ipamd.optional(id, "The node's instance."),
  instanceType: ipamd.optional(id, 'Its type, from which the limits come.'),
  zone: ipamd.optional(id, 'Its zone, as the cloud API names it.'),
  instanceENIs: ipamd.optional(
    wholeNumber(0, 1_000),
    'How many ENIs it may have on standard places, the primary one not counted. Exclusive ENIs use them too where extensionENIs is absent: the scheduler binds no Pod to a node that has no place for its ENI.',
  ),
  extensionENIs: ipamd.optional(
    wholeNumber(0, 1_000),
    'How many more it may have on places of the extension type, which exclusive ENIs alone use. Absent: none.',
  ),
  vpcID: ipamd.optional(id, 'Its VPC.'),
  routeENIs: ipamd.optional(eniCount, 'How many shared ENIs are attached; for kubectl get.'),
  routeENIIPs: ipamd.optional(ipCount, 'How many Pod addresses they have; for kubectl get.'),
  allocatableRouteENIIPs: ipamd.optional(
    ipCount,
    "Most Pod addresses that the node can have now: its limits, but no more than it has plus what its subnets can still give. Absent: the subnets do not limit it. The agent's device plugin tells kubelet.",
  ),
  staticRouteENIIPs: ipamd.optional(
    ipCount,
    'How many places on shared ENIs kept addresses have, or are about to have: the pool of the agent has the rest.',
  ),
  staticDirectENIs: ipamd.optional(
    eniCount,
    'How many exclusive ENIs are kept for Pods of one name, or are about to be: the pool of the agent has the rest of maxDirectENI.',
  ),
  allocatableDirectENIs: ipamd.optional(
    eniCount,
    'Most exclusive ENIs that the node can have now, kept ones included, where its shared ENIs leave it fewer places than maxDirectENI. Absent: maxDirectENI.',
  ),
  directENIs: ipamd.optional(eniCount, 'How many exclusive ENIs are attached; for kubectl get.'),
  maxEIPs: ipamd.optional(
    wholeNumber(0, 1_000),
    'Most public addresses that Pods of the node can have: what the instance may bind, less its own.',
  ),
  describedAt: ipamd.optional(instant, 'When the cloud was last asked what it holds for this node.'),
  conditions: ipamd.optional(listOf(condition, CONDITIONS), 'What holds and what does not, with the reason.'),
};

/** The fields of `loadBalancers`. */
export const LOAD_BALANCERS = {
  registeredIPs: ccm.optional(
    listOf(anyIp, { maxItems: MAX_IPS }),
    'Addresses of Pods of this node that are, or are about to be, targets of a load balancer. Written before an address is registered; taken out after it is deregistered. Agent and ipamd give none of them to another Pod, and give none back. Absent: no controller has written here, and nothing waits.',
  ),
};

/**
 * Decodes the warm targets from the annotations, by the annotation's name. They are present only when they were
 * accepted, and then both are. Faults of the annotations are not faults of the object: {@link readNodeSettings} reports
 * them.
 */
const warmAnnotations: Decoder<{
  readonly [WARM_TARGET_ANNOTATION.min]?: number;
  readonly [WARM_TARGET_ANNOTATION.max]?: number;
}> = (value) => {
  const { routeWarm } = readNodeSettings(value).settings;
  if (routeWarm === undefined) return {};
  return { [WARM_TARGET_ANNOTATION.min]: routeWarm.min, [WARM_TARGET_ANNOTATION.max]: routeWarm.max };
};
const METADATA = {
  name: required(text(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'the node name')),
  uid: optional(text()),
  resourceVersion: optional(text()),
  deletionTimestamp: optional(text()),
  annotations: optional(warmAnnotations),
};

/** The kind NodeENIConfig: a node's demand (spec) and the cloud's supply (status) in one object. */
export const NODE_ENI_CONFIG_KIND = resourceKind({
  kind: 'NodeENIConfig',
  plural: 'nodeeniconfigs',
  singular: 'nodeeniconfig',
  shortNames: ['nec'],
  scope: 'Cluster',
  named: 'as its node',
  about:
    "A node's demand for addresses (spec) and its ENIs (status). The agent and ipamd both read it, change their own fields and write it whole, guarded by the resourceVersion. The cloud controller manager merges its own part, loadBalancers.",
  fields: {
    spec: part.optional(objectOf(SPEC, [WARM_TARGETS_RULE, DIRECT_WARM_TARGETS_RULE]), 'What the node wants.'),
    status: part.optional(objectOf(STATUS), 'What the node has.'),
    loadBalancers: part.optional(objectOf(LOAD_BALANCERS), 'What load balancers have of the node.'),
  },
  rules: [OBSERVED_EPOCH_RULE],
  columns: [
    { name: 'ENIs', type: 'integer', jsonPath: '.status.routeENIs' },
    { name: 'IPs', type: 'integer', jsonPath: '.status.routeENIIPs' },
    { name: 'Desired', type: 'integer', jsonPath: '.spec.desiredRouteENIIP' },
    { name: 'Allocatable', type: 'integer', jsonPath: '.status.allocatableRouteENIIPs' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Max-ENIs', type: 'integer', jsonPath: '.spec.maxRouteENI', wide: true },
    { name: 'IPs-per-ENI', type: 'integer', jsonPath: '.spec.maxIPPerENI', wide: true },
    { name: 'Instance', type: 'string', jsonPath: '.status.instanceID', wide: true },
    { name: 'Type', type: 'string', jsonPath: '.status.instanceType', wide: true },
    { name: 'Zone', type: 'string', jsonPath: '.status.zone', wide: true },
    { name: 'Epoch', type: 'integer', jsonPath: '.status.supplyEpoch', wide: true },
    { name: 'Call', type: 'string', jsonPath: '.status.intents[0].action', wide: true },
    AGE_COLUMN,
  ],
});

/** The fields of the whole object. */
export const NODE_ENI_CONFIG = {
  apiVersion: required(oneOf([API_VERSION])),
  kind: required(oneOf(['NodeENIConfig'])),
  metadata: required(record(METADATA, 'ignore')),
  ...NODE_ENI_CONFIG_KIND.fields,
};

/** One address of an ENI, as in `status.eniInfos[].addresses[]`. */
export type NodeEniAddress = RecordOf<typeof ADDRESS>;
/** One ENI of a node. Of each family it has primary address, gateway and subnet, or none of them. */
export type NodeEniInfo = RecordOf<typeof ENI_INFO>;
/** What the node needs. The agent owns counts and offers; users and policy own the rest. */
export type NodeEniConfigSpec = RecordOf<typeof SPEC>;
/** What the node has; owned by ipamd. */
export type NodeEniConfigStatus = RecordOf<typeof STATUS>;
/** The whole object with its known fields. */
export type NodeEniConfigFields = RecordOf<typeof NODE_ENI_CONFIG>;
