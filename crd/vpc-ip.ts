import { CONDITIONS, condition, id, objectName, podReference } from './common-values.ts';
import { type Resource, resourceOf } from './decode-resource.ts';
import { ownedBy, part } from './field.ts';
import { intent } from './intent.ts';
import { AGE_COLUMN, resourceKind } from './resource-kind.ts';
import { anyIp, choice, listOf, objectOf, sentence } from './value.ts';

const ipamd = ownedBy('ipamd');

const SPEC = {
  type: ipamd.required(choice(['Pod', 'ENI']), "Pod: a Pod's address. ENI: an ENI's own."),
  ip: ipamd.required(anyIp, 'The address; the name spells it so that Kubernetes takes it.'),
  claimRef: ipamd.optional(podReference, 'The VpcIPClaim, and so the Pod, that it is bound to.'),
  subnetID: ipamd.optional(id, 'The subnet that it is from.'),
  nodeName: ipamd.optional(objectName, 'The node that it is on.'),
};

const STATUS = {
  phase: ipamd.optional(
    choice(['Pending', 'Attaching', 'Assigned', 'Kept', 'Releasing', 'Failed']),
    'Attaching: the cloud is moving it to the ENI. Kept: on no ENI, and promised to its claim.',
  ),
  eniID: ipamd.optional(id, 'The ENI that it is on.'),
  assignmentID: ipamd.optional(id, 'The assignment, as the NodeENIConfig names it.'),
  intent: ipamd.optional(intent, 'The cloud call under way for this address in static mode.'),
  message: ipamd.optional(sentence(1024), "Why it is Pending or Failed, with the cloud's own error text."),
  conditions: ipamd.optional(listOf(condition, CONDITIONS), 'What holds and what does not, with the reason.'),
};

/** The kind VpcIP: an address in use or retained. */
export const VPC_IP_KIND = resourceKind({
  kind: 'VpcIP',
  plural: 'vpcips',
  singular: 'vpcip',
  shortNames: ['vip'],
  scope: 'Cluster',
  named: 'as its IPv4 address; for IPv6 the eight groups in full, joined by dashes: fd00-0008-0000-…-0017',
  about: 'An address that is in use or kept. Written by ipamd; the label tke.cloud.tencent.com/node-name has its node.',
  fields: {
    spec: part.required(
      objectOf(SPEC, [{ rule: 'self.ip == oldSelf.ip', message: 'the address of a VpcIP cannot change' }]),
      'Which address, and whose.',
    ),
    status: part.optional(objectOf(STATUS), 'Where it is.'),
  },
  rules: [],
  columns: [
    { name: 'Pod-Namespace', type: 'string', jsonPath: '.spec.claimRef.namespace' },
    { name: 'Pod', type: 'string', jsonPath: '.spec.claimRef.name' },
    { name: 'Node', type: 'string', jsonPath: '.spec.nodeName' },
    { name: 'ENI', type: 'string', jsonPath: '.status.eniID' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Type', type: 'string', jsonPath: '.spec.type', wide: true },
    { name: 'Subnet', type: 'string', jsonPath: '.spec.subnetID', wide: true },
    { name: 'Message', type: 'string', jsonPath: '.status.message', wide: true },
    AGE_COLUMN,
  ],
});

/** A decoded VpcIP. */
export type VpcIp = Resource<(typeof VPC_IP_KIND)['fields']>;
/** Decodes a VpcIP. */
export const vpcIp = resourceOf(VPC_IP_KIND);

/** Returns the name of the VpcIP of an address. All forms of one address yield the same name. */
export function vpcIpName(ip: string): string {
  if (!ip.includes(':')) return ip;
  const [head = '', tail] = ip.toLowerCase().split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').flatMap(groupsOf));
  const [front, back] = [groups(head), groups(tail ?? '')];
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - front.length - back.length }, () => '0');
  return [...front, ...zeros, ...back].map((group) => group.padStart(4, '0')).join('-');
}

/** Splits a group. The last one of an IPv6 address may be written as an IPv4 address, which is two groups. */
function groupsOf(part: string): readonly string[] {
  if (!part.includes('.')) return [part];
  const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
  return [((a << 8) | b).toString(16), ((c << 8) | d).toString(16)];
}
