import { CONDITIONS, condition, id, objectName, podReference } from './common-values.ts';
import { resourceOf } from './decode-resource.ts';
import { ownedBy, part } from './field.ts';
import { AGE_COLUMN, resourceKind } from './resource-kind.ts';
import { anyIp, choice, listOf, macAddress, objectOf, wholeNumber } from './value.ts';

const people = ownedBy('people');
const ipamd = ownedBy('ipamd');
const agent = ownedBy('agent');

const SPEC = {
  ip: people.required(anyIp, 'The address in the data centre network.'),
  prefixLength: people.optional(wholeNumber(0, 128), 'Its prefix length.'),
  gateway: people.optional(anyIp, 'The gateway of its network.'),
  nodeName: ipamd.optional(objectName, 'The node whose agent may give it to a Pod.'),
  claimRef: ipamd.optional(podReference, 'The Pod that it is for.'),
};

const STATUS = {
  phase: agent.optional(choice(['Available', 'Assigned', 'Releasing']), 'Whether a Pod has it.'),
  mac: agent.optional(macAddress, 'The MAC address that it answers with.'),
  containerID: agent.optional(id, 'The sandbox that has it.'),
  conditions: ipamd.optional(listOf(condition, CONDITIONS), 'What holds and what does not, with the reason.'),
};

/** The kind UnderlayIP: an address of a data centre network for nodes outside the cloud. */
export const UNDERLAY_IP_KIND = resourceKind({
  kind: 'UnderlayIP',
  plural: 'underlayips',
  singular: 'underlayip',
  shortNames: ['uip'],
  scope: 'Cluster',
  named: 'as a VpcIP of the same address',
  about:
    "An address of a data centre network, for hybrid clusters. Its name is the product's; its fields are ours, and no executable gives such addresses to Pods yet.",
  fields: {
    spec: part.required(
      objectOf(SPEC, [{ rule: 'self.ip == oldSelf.ip', message: 'the address of an UnderlayIP cannot change' }]),
      'Which address, and for whom.',
    ),
    status: part.optional(objectOf(STATUS), 'Who has it.'),
  },
  rules: [],
  columns: [
    { name: 'IP', type: 'string', jsonPath: '.spec.ip' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Node', type: 'string', jsonPath: '.spec.nodeName' },
    AGE_COLUMN,
  ],
});

/** Decodes an UnderlayIP. */
export const underlayIp = resourceOf(UNDERLAY_IP_KIND);
