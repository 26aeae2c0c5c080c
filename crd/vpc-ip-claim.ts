import {
  CONDITIONS,
  condition,
  deletePolicy,
  duration,
  eniMode,
  id,
  objectName,
  podReference,
} from './common-values.ts';
import { type Resource, resourceOf } from './decode-resource.ts';
import { ownedBy, part } from './field.ts';
import { AGE_COLUMN, resourceKind } from './resource-kind.ts';
import { anyIp, choice, instant, listOf, matchingText, objectOf, sentence } from './value.ts';

const ipamd = ownedBy('ipamd');
const scheduler = ownedBy('scheduler');

const WORKLOAD = {
  kind: part.required(matchingText(/^[A-Za-z]{1,63}$/, 'a kind such as StatefulSet', 63), 'Its kind.'),
  name: part.required(objectName, 'Its name.'),
  uid: part.required(id, 'Its uid.'),
};

const SPEC = {
  podUID: ipamd.optional(id, 'The uid of the Pod that holds the claim now; absent while none does.'),
  mode: ipamd.required(eniMode, 'How the Pod is joined to the VPC.'),
  workload: ipamd.optional(objectOf(WORKLOAD), "The Pod's controller: when it goes, so may a kept address."),
  deletePolicy: ipamd.optional(deletePolicy, 'Never: kept for the next Pod of this name. From the Pod annotation.'),
  claimExpiredDuration: ipamd.optional(duration, 'How long a kept address waits for its Pod; 0s: forever.'),
  nominatedIP: ipamd.optional(anyIp, 'The address that the Pod asks for.'),
  nominatedSubnetIDs: ipamd.optional(listOf(id, { maxItems: 64 }), 'The only subnets that the Pod accepts.'),
  nodeName: scheduler.optional(objectName, 'The node for which the address is held, written before the Pod is bound.'),
};

const RESERVATION = {
  state: part.required(
    choice(['Recorded', 'Reserved', 'Releasing']),
    'Recorded: may or may not have been asked for. Reserved: the VPC holds it. Releasing: it is being given back.',
  ),
  clientToken: part.required(
    matchingText(/^[!-~]{1,64}$/, 'up to 64 ASCII characters', 64),
    'Sent with the call, and again with each repetition, so that the cloud reserves one address.',
  ),
  vpcID: part.required(id, 'The VPC.'),
  subnetID: part.required(id, 'The subnet of the address.'),
  ip: part.optional(anyIp, 'The address; absent while the cloud has not chosen one.'),
  id: part.optional(id, "The cloud's id of it."),
};

const STATUS = {
  phase: ipamd.optional(
    choice(['Pending', 'Bound', 'Retained', 'Releasing', 'Failed']),
    'Retained: the Pod is gone, the address is kept for its namesake.',
  ),
  vpcIPs: ipamd.optional(listOf(objectName, { maxItems: 4 }), 'The VpcIPs that are bound to the claim.'),
  ips: ipamd.optional(listOf(anyIp, { maxItems: 4 }), 'Their addresses, the first family first.'),
  eniID: ipamd.optional(id, 'The ENI that they are on.'),
  nodeName: ipamd.optional(objectName, 'The node that the ENI is on.'),
  reservation: ipamd.optional(
    objectOf(RESERVATION),
    'The address as a reserved one of the VPC: of a Pod on a super node, or between Pods.',
  ),
  lastPod: ipamd.optional(podReference, 'The Pod that held it last.'),
  retainedSince: ipamd.optional(instant, 'When the last Pod of the claim was gone; its expiry counts from here.'),
  message: ipamd.optional(sentence(1024), "Why it is Pending or Failed, with the cloud's own error text."),
  conditions: ipamd.optional(listOf(condition, CONDITIONS), 'What holds and what does not, with the reason.'),
};

/** The kind VpcIPClaim: a Pod's request for an address. */
export const VPC_IP_CLAIM_KIND = resourceKind({
  kind: 'VpcIPClaim',
  plural: 'vpcipclaims',
  singular: 'vpcipclaim',
  shortNames: ['vipc'],
  scope: 'Namespaced',
  named: 'as its Pod, in its namespace',
  about:
    "A Pod's demand for an address. In static mode it is the binding, and deleting it gives the address up; otherwise ipamd writes it afterwards, for people and kubectl, and nothing waits for it.",
  fields: {
    spec: part.required(objectOf(SPEC), 'What the Pod wants.'),
    status: part.optional(objectOf(STATUS), 'What it has.'),
  },
  rules: [],
  columns: [
    { name: 'IP', type: 'string', jsonPath: '.status.ips[0]' },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'IP-2', type: 'string', jsonPath: '.status.ips[1]', wide: true },
    { name: 'ENI', type: 'string', jsonPath: '.status.eniID', wide: true },
    { name: 'Mode', type: 'string', jsonPath: '.spec.mode', wide: true },
    { name: 'Policy', type: 'string', jsonPath: '.spec.deletePolicy', wide: true },
    { name: 'Message', type: 'string', jsonPath: '.status.message', wide: true },
    AGE_COLUMN,
  ],
});

/** A decoded VpcIPClaim. */
export type VpcIpClaim = Resource<(typeof VPC_IP_CLAIM_KIND)['fields']>;
/** Decodes a VpcIPClaim. */
export const vpcIpClaim = resourceOf(VPC_IP_CLAIM_KIND);
