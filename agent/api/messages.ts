import type { InitOf, MessageOf, MessageTable } from './codec.ts';

// The tables of agent.proto, in its order; a test compares both. Names are proto's in camelCase.

/** One attachment: one interface of one sandbox. */
export const SANDBOX = {
  containerId: { number: 1, type: 'string' },
  ifName: { number: 2, type: 'string' },
  netns: { number: 3, type: 'string' },
  podNamespace: { number: 4, type: 'string' },
  podName: { number: 5, type: 'string' },
  podUid: { number: 6, type: 'string' },
} as const satisfies MessageTable;

/** The name under which the executable was called: the numbers of `enum Plugin`. */
export const PLUGIN = {
  PLUGIN_UNSPECIFIED: 0,
  PLUGIN_ROUTE_ENI: 1,
  PLUGIN_ENI_IPAMC: 2,
  PLUGIN_DIRECT_ENI: 3,
} as const;

/** One of PLUGIN. A decoded message may hold a number of a later release; therefore its field is a plain number. */
export type Plugin = (typeof PLUGIN)[keyof typeof PLUGIN];

/** A failure in CNI's terms. */
export const CNI_ERROR = {
  code: { number: 1, type: 'uint32' },
  msg: { number: 2, type: 'string' },
  details: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** One end of a link. */
export const INTERFACE = {
  name: { number: 1, type: 'string' },
  mac: { number: 2, type: 'string' },
  mtu: { number: 3, type: 'uint32' },
  sandbox: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** One address of the Pod; interfaceIndex -1 means none. */
export const ADDRESS = {
  address: { number: 1, type: 'string' },
  gateway: { number: 2, type: 'string' },
  interfaceIndex: { number: 3, type: 'int32' },
  eniId: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** One route inside the Pod. */
export const ROUTE = {
  dst: { number: 1, type: 'string' },
  gw: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** The result of an ADD. */
export const ATTACHMENT = {
  interfaces: { number: 1, type: 'message', message: INTERFACE, repeated: true },
  ips: { number: 2, type: 'message', message: ADDRESS, repeated: true },
  routes: { number: 3, type: 'message', message: ROUTE, repeated: true },
} as const satisfies MessageTable;

/** Requests an address and, for tke-route-eni, the wiring. */
export const ATTACH_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  mtu: { number: 4, type: 'uint32' },
  deadlineUnixMs: { number: 5, type: 'uint64' },
  disableIpv6: { number: 6, type: 'bool' },
  clientVersion: { number: 7, type: 'string' },
} as const satisfies MessageTable;

/** A network that the executable has other plugins make. */
export const DELEGATE = {
  network: { number: 1, type: 'string' },
  confDir: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Reply to ATTACH_REQUEST: an attachment or an error, never both. */
export const ATTACH_REPLY = {
  attachment: { number: 1, type: 'message', message: ATTACHMENT, oneof: 'outcome' },
  error: { number: 2, type: 'message', message: CNI_ERROR, oneof: 'outcome' },
  agentVersion: { number: 3, type: 'string' },
  delegate: { number: 4, type: 'message', message: DELEGATE },
} as const satisfies MessageTable;

/** Requests that wiring and address are released. */
export const DETACH_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  clientVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Reply to DETACH_REQUEST; no error means success. */
export const DETACH_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  agentVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Requests a comparison of an attachment with the kernel. */
export const CHECK_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  prevResult: { number: 4, type: 'bytes' },
  clientVersion: { number: 5, type: 'string' },
} as const satisfies MessageTable;

/** Reply to CHECK_REQUEST with every difference. */
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

/** Reply to STATUS_REQUEST; no error means that an ADD could be served. */
export const STATUS_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  agentVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** An attachment that the runtime still has. */
export const VALID_ATTACHMENT = {
  containerId: { number: 1, type: 'string' },
  ifName: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** Requests the release of every attachment of a network that is not listed. */
export const GC_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  network: { number: 2, type: 'string' },
  validAttachments: { number: 3, type: 'message', message: VALID_ATTACHMENT, repeated: true },
  clientVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Reply to GC_REQUEST. */
export const GC_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  released: { number: 2, type: 'uint32' },
  agentVersion: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** A call as the container runtime made it. */
export const RUN_REQUEST = {
  name: { number: 1, type: 'string' },
  env: { number: 2, type: 'string', repeated: true },
  stdin: { number: 3, type: 'bytes' },
} as const satisfies MessageTable;

/** What the launcher of the executables does with its call. */
export const RUN_REPLY = {
  outcome: { number: 1, type: 'enum' },
  exitCode: { number: 2, type: 'uint32' },
  stdout: { number: 3, type: 'bytes' },
  agentVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Values of RUN_REPLY.outcome. */
export const OUTCOME = { OUTCOME_UNSPECIFIED: 0, OUTCOME_PRINT: 1, OUTCOME_RUN_YOURSELF: 2 } as const;

/** A decoded SANDBOX. */
export type Sandbox = MessageOf<typeof SANDBOX>;
/** A decoded CNI_ERROR. */
export type CniErrorMessage = MessageOf<typeof CNI_ERROR>;
/** A decoded INTERFACE. */
export type Interface = MessageOf<typeof INTERFACE>;
/** A decoded ADDRESS. */
export type Address = MessageOf<typeof ADDRESS>;
/** A decoded ROUTE. */
export type Route = MessageOf<typeof ROUTE>;
/** A decoded ATTACHMENT. */
export type Attachment = MessageOf<typeof ATTACHMENT>;
/** A decoded ATTACH_REQUEST. */
export type AttachRequest = MessageOf<typeof ATTACH_REQUEST>;
/** A decoded ATTACH_REPLY. */
export type AttachReply = MessageOf<typeof ATTACH_REPLY>;
/** A decoded DETACH_REQUEST. */
export type DetachRequest = MessageOf<typeof DETACH_REQUEST>;
/** A decoded DETACH_REPLY. */
export type DetachReply = MessageOf<typeof DETACH_REPLY>;
/** A decoded CHECK_REQUEST. */
export type CheckRequest = MessageOf<typeof CHECK_REQUEST>;
/** A decoded CHECK_REPLY. */
export type CheckReply = MessageOf<typeof CHECK_REPLY>;
/** A decoded STATUS_REQUEST. */
export type StatusRequest = MessageOf<typeof STATUS_REQUEST>;
/** A decoded STATUS_REPLY. */
export type StatusReply = MessageOf<typeof STATUS_REPLY>;
/** A decoded VALID_ATTACHMENT. */
export type ValidAttachment = MessageOf<typeof VALID_ATTACHMENT>;
/** A decoded GC_REQUEST. */
export type GcRequest = MessageOf<typeof GC_REQUEST>;
/** A decoded GC_REPLY. */
export type GcReply = MessageOf<typeof GC_REPLY>;

/** An ATTACH_REPLY to encode: missing fields get their defaults. */
export type AttachReplyInit = InitOf<typeof ATTACH_REPLY>;
