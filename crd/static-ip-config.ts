import { CONDITIONS, condition, deletePolicy, duration, id } from './common-values.ts';
import { type Resource, resourceOf } from './decode-resource.ts';
import { ownedBy, part } from './field.ts';
import { AGE_COLUMN, resourceKind } from './resource-kind.ts';
import { anyIp, listOf, matchingText, objectOf, textsByName } from './value.ts';

const people = ownedBy('people');
const ipamd = ownedBy('ipamd');

const SPEC = {
  namespaces: people.optional(
    listOf(matchingText(/^([*]|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$/, "a namespace, or '*' for all", 63), {
      maxItems: 256,
    }),
    "Namespaces of the Pods that it is for; only in the namespace of ipamd, as a rule of the whole cluster. Absent: the object's own.",
  ),
  podLabels: people.optional(
    textsByName(32),
    'The Pods that it is for: those with all of these labels. Absent or empty: none.',
  ),
  deletePolicy: people.optional(
    deletePolicy,
    'What becomes of the address with the Pod; a Pod annotation goes before.',
  ),
  claimExpiredDuration: people.optional(duration, 'How long a kept address waits for its Pod; 0s: forever.'),
  subnetIDs: people.optional(listOf(id, { maxItems: 64 }), 'The only subnets that addresses come from.'),
  ips: people.optional(listOf(anyIp, { maxItems: 4096 }), 'The only addresses that are given.'),
};

const STATUS = {
  conditions: ipamd.optional(listOf(condition, CONDITIONS), 'What holds and what does not, with the reason.'),
};

/** The kind StaticIPConfig: rules for the static addresses of many Pods. */
export const STATIC_IP_CONFIG_KIND = resourceKind({
  kind: 'StaticIPConfig',
  plural: 'staticipconfigs',
  singular: 'staticipconfig',
  shortNames: ['sic'],
  scope: 'Namespaced',
  named: 'freely',
  about:
    "Rules for the kept addresses of a namespace's Pods, or in the namespace of ipamd of many, for those who would rather not annotate each. A rule of the Pod's own namespace goes first; of several that select a Pod the first by name holds. Its name is the product's; its fields are ours.",
  fields: {
    spec: part.optional(objectOf(SPEC), 'The rules.'),
    status: part.optional(objectOf(STATUS), 'Whether they can be kept.'),
  },
  rules: [],
  columns: [
    { name: 'Policy', type: 'string', jsonPath: '.spec.deletePolicy' },
    { name: 'Expires', type: 'string', jsonPath: '.spec.claimExpiredDuration' },
    AGE_COLUMN,
  ],
});

/** A decoded StaticIPConfig. */
export type StaticIpConfig = Resource<(typeof STATIC_IP_CONFIG_KIND)['fields']>;
/** Decodes a StaticIPConfig. */
export const staticIpConfig = resourceOf(STATIC_IP_CONFIG_KIND);
