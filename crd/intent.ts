import { cloudError, id } from './common-values.ts';
import { part } from './field.ts';
import { anyIp, choice, instant, listOf, matchingText, objectOf, textsByName, wholeNumber } from './value.ts';

/** Cloud calls that change something. A call that takes a ClientToken may be sent again with the same one. */
export const MUTATIONS = {
  CreateNetworkInterface: { takesClientToken: true },
  AttachNetworkInterface: { takesClientToken: true },
  DetachNetworkInterface: { takesClientToken: true },
  DeleteNetworkInterface: { takesClientToken: false },
  AssignPrivateIpAddresses: { takesClientToken: true },
  UnassignPrivateIpAddresses: { takesClientToken: false },
  MigratePrivateIpAddress: { takesClientToken: false },
  AssignIpv6Addresses: { takesClientToken: false },
  UnassignIpv6Addresses: { takesClientToken: false },
  ModifyNetworkInterfaceAttribute: { takesClientToken: false },
  AllocateAddresses: { takesClientToken: true },
  AssociateAddress: { takesClientToken: false },
  DisassociateAddress: { takesClientToken: false },
  ReleaseAddresses: { takesClientToken: false },
} as const;

/** The name of a cloud call that changes something. */
export type Mutation = keyof typeof MUTATIONS;

// Object.keys of the const above returns exactly its keys.
const MUTATION_NAMES = Object.keys(MUTATIONS) as Mutation[];

/**
 * The fields of an intent: a cloud call that ipamd is about to send, has sent, or does not know the outcome of.
 *
 * ```
 * (write, guarded) Recorded -> call -> Accepted (task id) -> task done -> result and removal in one guarded write
 *                                 \-> no answer: Unclear -> describe by name and tags -> as above, or call again
 * ```
 * The intent is stored in the object that the call is for. So one guarded write both withdraws an address from use and
 * records its release, and one write both stores the result and removes the intent: the two never disagree.
 *
 * `resourceName`, `tags` and `clientToken` are derived from the object's uid and the intent's id alone: a leader that
 * repeats the decision sends the same call. A leader that finds an intent of another epoch waits lease + request
 * timeout before it describes. It sends the call again only where `MUTATIONS` says that the cloud takes a token.
 */
export const INTENT = {
  id: part.required(id, 'Names the intent within its object; never used twice.'),
  action: part.required(choice(MUTATION_NAMES), 'The cloud call.'),
  phase: part.required(
    choice(['Recorded', 'Accepted', 'Unclear']),
    'Recorded: may or may not have been sent. Accepted: the cloud took it, its task runs. Unclear: sent, no answer.',
  ),
  leaderEpoch: part.required(
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
    "The count of leader changes when it was recorded: tells a leader's own intents from those it inherited.",
  ),
  clientToken: part.optional(
    matchingText(/^[!-~]{1,64}$/, 'up to 64 ASCII characters', 64),
    'Sent with the call, and again with each repetition, so that the cloud does it once.',
  ),
  resourceName: part.optional(
    matchingText(/^[a-zA-Z0-9_.-]{1,60}$/, 'up to 60 letters, digits and . _ -', 60),
    'The deterministic name of what is created: what to look for when its id never arrived.',
  ),
  tags: part.optional(textsByName(20), 'Tags of what is created; our mark for finding and for orphan collection.'),
  taskID: part.optional(id, 'The asynchronous task: the RequestId for the VPC, a number for EIPs.'),
  instanceID: part.optional(id, 'The instance that is attached to or detached from.'),
  eniID: part.optional(id, 'The ENI that is changed; the source of a migration.'),
  targetENIID: part.optional(id, 'The ENI that an address migrates to.'),
  subnetID: part.optional(id, 'The subnet of what is created.'),
  securityGroups: part.optional(listOf(id, { maxItems: 64 }), 'The whole wanted list, in order.'),
  ips: part.optional(listOf(anyIp, { maxItems: 16 }), 'The addresses that are given or taken.'),
  ipCount: part.optional(wholeNumber(1, 256), 'How many addresses are asked for, where the cloud chooses them.'),
  claim: part.optional(
    matchingText(/^[a-z0-9][-a-z0-9.]{0,252}[/][a-z0-9][-a-z0-9.]{0,252}$/, 'a namespace and a name', 507),
    'The VpcIPClaim that the address or the ENI is for.',
  ),
  eipID: part.optional(id, 'The EIP that is bound, unbound or released.'),
  requestTimeoutSeconds: part.required(
    wholeNumber(1, 3600),
    'The sender gives up after this; an inheriting leader waits as long, after the lease, before it looks.',
  ),
  recordedAt: part.required(instant, 'When it was recorded; for people, no decision hangs on it.'),
  tries: part.optional(wholeNumber(0, 1_000_000), 'How often the call was sent.'),
  lastError: part.optional(cloudError, 'Why the last try failed.'),
};

/** An intent as a value: its fields and the rules between them. */
export const intent = objectOf(INTENT, [
  {
    rule: "self.action != 'CreateNetworkInterface' || has(self.resourceName)",
    message: 'a creation needs the name by which it can be found again',
  },
]);

/** Bounds of a list of intents. One instance has one mutation at a time, and a broken ENI must not block another's. */
export const INTENTS = { maxItems: 16, keys: ['id'] } as const;
