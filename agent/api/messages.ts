import type { InitOf, MessageOf, MessageTable } from './codec.ts';

// The tables of agent.proto, in its order; a test compares both. Names are proto's in camelCase.

/** Names one attachment: one interface of one sandbox. */
export const SANDBOX = {
  containerId: { number: 1, type: 'string' },
  ifName: { number: 2, type: 'string' },
  netns: { number: 3, type: 'string' },
  podNamespace: { number: 4, type: 'string' },
  podName: { number: 5, type: 'string' },
  podUid: { number: 6, type: 'string' },
} as const satisfies MessageTable;

/** Tells what the executable was called as: the numbers of `enum Plugin`. */
export const PLUGIN = {
  PLUGIN_UNSPECIFIED: 0,
  PLUGIN_ROUTE_ENI: 1,
  PLUGIN_ENI_IPAMC: 2,
  PLUGIN_DIRECT_ENI: 3,
} as const;

/** Is one of PLUGIN. Decoded messages may hold a number of a later release, so their field is a plain number. */
export type Plugin = (typeof PLUGIN)[keyof typeof PLUGIN];

/** Reports a failure in CNI's terms. */
export const CNI_ERROR = {
  code: { number: 1, type: 'uint32' },
  msg: { number: 2, type: 'string' },
  details: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** Describes one end of a link. */
export const INTERFACE = {
  name: { number: 1, type: 'string' },
  mac: { number: 2, type: 'string' },
  mtu: { number: 3, type: 'uint32' },
  sandbox: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Describes one address of the Pod; interfaceIndex -1 means none. */
export const ADDRESS = {
  address: { number: 1, type: 'string' },
  gateway: { number: 2, type: 'string' },
  interfaceIndex: { number: 3, type: 'int32' },
  eniId: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Describes one route inside the Pod. */
export const ROUTE = {
  dst: { number: 1, type: 'string' },
  gw: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Describes what an ADD made. */
export const ATTACHMENT = {
  interfaces: { number: 1, type: 'message', message: INTERFACE, repeated: true },
  ips: { number: 2, type: 'message', message: ADDRESS, repeated: true },
  routes: { number: 3, type: 'message', message: ROUTE, repeated: true },
} as const satisfies MessageTable;

/** Asks for an address and, for tke-route-eni, the wiring. */
export const ATTACH_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  mtu: { number: 4, type: 'uint32' },
  deadlineUnixMs: { number: 5, type: 'uint64' },
  disableIpv6: { number: 6, type: 'bool' },
  clientVersion: { number: 7, type: 'string' },
} as const satisfies MessageTable;

/** Answers ATTACH_REQUEST with an attachment or an error, never both. */
export const ATTACH_REPLY = {
  attachment: { number: 1, type: 'message', message: ATTACHMENT, oneof: 'outcome' },
  error: { number: 2, type: 'message', message: CNI_ERROR, oneof: 'outcome' },
  agentVersion: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** Asks to take wiring and address back. */
export const DETACH_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  clientVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Answers DETACH_REQUEST; without an error it succeeded. */
export const DETACH_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  agentVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Asks to compare an attachment with the kernel. */
export const CHECK_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  prevResult: { number: 4, type: 'bytes' },
  clientVersion: { number: 5, type: 'string' },
} as const satisfies MessageTable;

/** Answers CHECK_REQUEST with every difference. */
export const CHECK_REPLY = {
  differences: { number: 1, type: 'string', repeated: true },
  error: { number: 2, type: 'message', message: CNI_ERROR },
  agentVersion: { number: 3, type: 'string' },
  attachment: { number: 4, type: 'message', message: ATTACHMENT },
} as const satisfies MessageTable;

/** Asks whether an ADD could be served now. */
export const STATUS_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  clientVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Answers STATUS_REQUEST; without an error an ADD could be served. */
export const STATUS_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  agentVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Names an attachment that the runtime still has. */
export const VALID_ATTACHMENT = {
  containerId: { number: 1, type: 'string' },
  ifName: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Asks to release every attachment of a network that is not listed. */
export const GC_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  network: { number: 2, type: 'string' },
  validAttachments: { number: 3, type: 'message', message: VALID_ATTACHMENT, repeated: true },
  clientVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Answers GC_REQUEST. */
export const GC_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  released: { number: 2, type: 'uint32' },
  agentVersion: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** Is SANDBOX, decoded. */
export type Sandbox = MessageOf<typeof SANDBOX>;
/** Is CNI_ERROR, decoded. */
export type CniErrorMessage = MessageOf<typeof CNI_ERROR>;
/** Is INTERFACE, decoded. */
export type Interface = MessageOf<typeof INTERFACE>;
/** Is ADDRESS, decoded. */
export type Address = MessageOf<typeof ADDRESS>;
/** Is ROUTE, decoded. */
export type Route = MessageOf<typeof ROUTE>;
/** Is ATTACHMENT, decoded. */
export type Attachment = MessageOf<typeof ATTACHMENT>;
/** Is ATTACH_REQUEST, decoded. */
export type AttachRequest = MessageOf<typeof ATTACH_REQUEST>;
/** Is ATTACH_REPLY, decoded. */
export type AttachReply = MessageOf<typeof ATTACH_REPLY>;
/** Is DETACH_REQUEST, decoded. */
export type DetachRequest = MessageOf<typeof DETACH_REQUEST>;
/** Is DETACH_REPLY, decoded. */
export type DetachReply = MessageOf<typeof DETACH_REPLY>;
/** Is CHECK_REQUEST, decoded. */
export type CheckRequest = MessageOf<typeof CHECK_REQUEST>;
/** Is CHECK_REPLY, decoded. */
export type CheckReply = MessageOf<typeof CHECK_REPLY>;
/** Is STATUS_REQUEST, decoded. */
export type StatusRequest = MessageOf<typeof STATUS_REQUEST>;
/** Is STATUS_REPLY, decoded. */
export type StatusReply = MessageOf<typeof STATUS_REPLY>;
/** Is VALID_ATTACHMENT, decoded. */
export type ValidAttachment = MessageOf<typeof VALID_ATTACHMENT>;
/** Is GC_REQUEST, decoded. */
export type GcRequest = MessageOf<typeof GC_REQUEST>;
/** Is GC_REPLY, decoded. */
export type GcReply = MessageOf<typeof GC_REPLY>;

/** Is an ATTACH_REPLY to encode: missing fields have their defaults. */
export type AttachReplyInit = InitOf<typeof ATTACH_REPLY>;
