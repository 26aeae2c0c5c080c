import { CONDITIONS, condition, duration, eniMode, id, objectName, podReference } from './common-values.ts';
import { resourceOf } from './decode-resource.ts';
import { ownedBy, part } from './field.ts';
import { INTENTS, intent } from './intent.ts';
import { AGE_COLUMN, resourceKind } from './resource-kind.ts';
import { choice, instant, ipv4, ipv6, listOf, macAddress, network, objectOf, sentence } from './value.ts';

const ipamd = ownedBy('ipamd');
const people = ownedBy('people');

const SPEC = {
  mode: ipamd.required(eniMode, 'Shared by Pods, or handed to one.'),
  subnetID: ipamd.optional(id, 'The subnet that it is made in.'),
  nodeName: ipamd.optional(objectName, 'The node that it belongs on.'),
  instanceID: ipamd.optional(id, "The node's instance."),
  claimRef: ipamd.optional(podReference, 'The Pod that an exclusive ENI is kept for.'),
  claimExpiredDuration: ipamd.optional(duration, 'How long it waits for its Pod; 0s: forever.'),
  securityGroups: people.optional(listOf(id, { maxItems: 64 }), 'Security groups; the order is the priority.'),
};

const STATUS = {
  phase: ipamd.optional(
    choice(['Creating', 'Available', 'Attaching', 'Attached', 'Detaching', 'Deleting', 'Failed']),
    'Where it is in its life.',
  ),
  eniID: ipamd.optional(id, "The cloud's id; absent until the creation was answered."),
  mac: ipamd.optional(macAddress, 'Its MAC address.'),
  primaryIP: ipamd.optional(ipv4, 'Its own IPv4 address.'),
  primaryIPv6: ipamd.optional(ipv6, 'Its own IPv6 address.'),
  gateway: ipamd.optional(ipv4, "The subnet's IPv4 gateway."),
  subnetCIDR: ipamd.optional(network(4), "The subnet's IPv4 network."),
  instanceID: ipamd.optional(id, 'The instance that it is attached to.'),
  podNamespace: ipamd.optional(objectName, 'Namespace of the Pod that uses it, or that it is kept for.'),
  podName: ipamd.optional(objectName, 'Name of that Pod.'),
  retainedSince: ipamd.optional(instant, 'When its last Pod was gone; its expiry counts from here.'),
  intents: ipamd.optional(listOf(intent, INTENTS), 'Cloud calls under way for it.'),
  message: ipamd.optional(sentence(1024), "What is wrong, with the cloud's own error text."),
  conditions: ipamd.optional(listOf(condition, CONDITIONS), 'What holds and what does not, with the reason.'),
};

/** The kind VpcENI: an ENI whose lifetime is independent of its node. */
export const VPC_ENI_KIND = resourceKind({
  kind: 'VpcENI',
  plural: 'vpcenis',
  singular: 'vpceni',
  shortNames: ['veni'],
  scope: 'Cluster',
  named: 'as the ENI in the cloud: a deterministic name of at most 60 characters',
  about: 'An ENI that outlives its place on a node: of static mode, or exclusive to a Pod.',
  fields: {
    spec: part.required(objectOf(SPEC), 'What it is for.'),
    status: part.optional(objectOf(STATUS), 'What the cloud has.'),
  },
  rules: [],
  columns: [
    { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
    { name: 'ENI', type: 'string', jsonPath: '.status.eniID' },
    { name: 'IP', type: 'string', jsonPath: '.status.primaryIP' },
    { name: 'Pod-Namespace', type: 'string', jsonPath: '.status.podNamespace' },
    { name: 'Pod', type: 'string', jsonPath: '.status.podName' },
    { name: 'Node', type: 'string', jsonPath: '.spec.nodeName' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Subnet', type: 'string', jsonPath: '.spec.subnetID', wide: true },
    { name: 'Message', type: 'string', jsonPath: '.status.message', wide: true },
    AGE_COLUMN,
  ],
});

/** Decodes a VpcENI. */
export const vpcEni = resourceOf(VPC_ENI_KIND);
