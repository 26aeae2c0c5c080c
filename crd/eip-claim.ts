import { CONDITIONS, condition, deletePolicy, duration, id, objectName } from './common-values.ts';
import { type Resource, resourceOf } from './decode-resource.ts';
import { EIP_CHARGE_TYPES, EIP_ISPS } from './eip-request.ts';
import { ownedBy, part } from './field.ts';
import { INTENTS, intent } from './intent.ts';
import { AGE_COLUMN, resourceKind } from './resource-kind.ts';
import { choice, flag, instant, ipv4, listOf, objectOf, sentence, wholeNumber } from './value.ts';

const ipamd = ownedBy('ipamd');

const SPEC = {
  podUID: ipamd.optional(id, 'The uid of the Pod that holds the claim now; absent while none does.'),
  eipIDs: ipamd.optional(listOf(id, { maxItems: 64 }), 'Existing EIPs to choose from, by the ordinal of the Pod name.'),
  bandwidthMbps: ipamd.optional(wholeNumber(1, 10_000), 'Bandwidth of an EIP that is made for the claim; default 100.'),
  isp: ipamd.optional(choice(EIP_ISPS), 'Carrier of an EIP that is made for the claim.'),
  chargeType: ipamd.optional(choice(EIP_CHARGE_TYPES), 'How an EIP that is made for the claim is paid.'),
  bandwidthPackageID: ipamd.optional(id, 'The package that it is paid from.'),
  deletePolicy: ipamd.optional(deletePolicy, 'Never: the EIP is kept for the next Pod of this name.'),
  claimExpiredDuration: ipamd.optional(duration, 'How long a kept EIP waits for its Pod; 0s: forever.'),
};

const STATUS = {
  phase: ipamd.optional(
    choice(['Pending', 'Allocating', 'Binding', 'Bound', 'Retained', 'Releasing', 'Failed']),
    'Retained: the Pod is gone, the EIP is kept for its namesake.',
  ),
  eipID: ipamd.optional(id, 'The EIP.'),
  publicIP: ipamd.optional(
    ipv4,
    'Its address, also written to the Pod annotation tke.cloud.tencent.com/eip-public-ip.',
  ),
  privateIP: ipamd.optional(ipv4, "The Pod's address that it is bound to."),
  eniID: ipamd.optional(id, 'The ENI that the Pod address is on.'),
  nodeName: ipamd.optional(objectName, 'The node whose places for EIPs it takes one of.'),
  allocations: ipamd.optional(
    wholeNumber(0, 1_000_000),
    'How many allocations were begun for it: what makes name and ClientToken of the next one.',
  ),
  isOurs: ipamd.optional(
    flag,
    'true: made for the claim, so released with it. false: somebody lent it; never released.',
  ),
  retainedSince: ipamd.optional(instant, 'When the last Pod of the claim was gone; its expiry counts from here.'),
  intents: ipamd.optional(listOf(intent, INTENTS), 'Cloud calls under way for it.'),
  message: ipamd.optional(sentence(1024), "What is wrong, with the cloud's own error text."),
  conditions: ipamd.optional(listOf(condition, CONDITIONS), 'What holds and what does not, with the reason.'),
};

/** The kind EIPClaim: a Pod's request for a public address. */
export const EIP_CLAIM_KIND = resourceKind({
  kind: 'EIPClaim',
  plural: 'eipclaims',
  singular: 'eipclaim',
  shortNames: ['eipc'],
  scope: 'Namespaced',
  named: 'as its Pod, in its namespace',
  about: "A Pod's demand for a public address of its own. Written by ipamd from the Pod's annotations.",
  fields: {
    spec: part.optional(objectOf(SPEC), 'What the Pod wants.'),
    status: part.optional(objectOf(STATUS), 'What it has.'),
  },
  rules: [],
  columns: [
    { name: 'Public-IP', type: 'string', jsonPath: '.status.publicIP' },
    { name: 'Pod-IP', type: 'string', jsonPath: '.status.privateIP' },
    { name: 'EIP', type: 'string', jsonPath: '.status.eipID' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Policy', type: 'string', jsonPath: '.spec.deletePolicy', wide: true },
    { name: 'Message', type: 'string', jsonPath: '.status.message', wide: true },
    AGE_COLUMN,
  ],
});

/** Names of the fields of an EIPClaim's spec and status: a writer leaves all other fields unchanged. */
export const EIP_CLAIM_FIELDS = {
  spec: new Set(Object.keys(SPEC)),
  status: new Set(Object.keys(STATUS)),
} as const satisfies Readonly<Record<string, ReadonlySet<string>>>;

/** A decoded EIPClaim. */
export type EipClaim = Resource<(typeof EIP_CLAIM_KIND)['fields']>;
/** Decodes an EIPClaim. */
export const eipClaim = resourceOf(EIP_CLAIM_KIND);
