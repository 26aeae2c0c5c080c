// Made from agent.proto by tools/gen-messages.ts; run: make gen
import type { InitOf, MessageOf, MessageTable } from './codec.ts';

/** Names one attachment: one interface of one sandbox. The lease key is container_id + if_name. */
export const SANDBOX = {
  containerId: { number: 1, type: 'string' },
  ifName: { number: 2, type: 'string' },
  netns: { number: 3, type: 'string' },
  podNamespace: { number: 4, type: 'string' },
  podName: { number: 5, type: 'string' },
  podUid: { number: 6, type: 'string' },
} as const satisfies MessageTable;
/** SANDBOX, decoded. */
export type Sandbox = MessageOf<typeof SANDBOX>;
/** SANDBOX to encode: missing fields get their defaults. */
export type SandboxInit = InitOf<typeof SANDBOX>;

/**
 * What the executable was called as. It decides who wires the link.
 * The numbers of `enum Plugin`.
 */
export const PLUGIN = {
  PLUGIN_UNSPECIFIED: 0,
  PLUGIN_ROUTE_ENI: 1,
  PLUGIN_ENI_IPAMC: 2,
  PLUGIN_DIRECT_ENI: 3,
} as const;
/** One of PLUGIN. A decoded message may hold a number of a later release; therefore its field is a plain number. */
export type Plugin = (typeof PLUGIN)[keyof typeof PLUGIN];

/** Requests an address and, for tke-route-eni, the wiring. */
export const ATTACH_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  mtu: { number: 4, type: 'uint32' },
  deadlineUnixMs: { number: 5, type: 'uint64' },
  disableIpv6: { number: 6, type: 'bool' },
  clientVersion: { number: 7, type: 'string' },
  uplink: { number: 8, type: 'bool' },
  ignoredKeys: { number: 9, type: 'string', repeated: true },
  filterPlace: { number: 10, type: 'bool' },
} as const satisfies MessageTable;
/** ATTACH_REQUEST, decoded. */
export type AttachRequest = MessageOf<typeof ATTACH_REQUEST>;
/** ATTACH_REQUEST to encode: missing fields get their defaults. */
export type AttachRequestInit = InitOf<typeof ATTACH_REQUEST>;

/** One end of a link. */
export const INTERFACE = {
  name: { number: 1, type: 'string' },
  mac: { number: 2, type: 'string' },
  mtu: { number: 3, type: 'uint32' },
  sandbox: { number: 4, type: 'string' },
} as const satisfies MessageTable;
/** INTERFACE, decoded. */
export type Interface = MessageOf<typeof INTERFACE>;
/** INTERFACE to encode: missing fields get their defaults. */
export type InterfaceInit = InitOf<typeof INTERFACE>;

/** One address of the Pod. */
export const ADDRESS = {
  address: { number: 1, type: 'string' },
  gateway: { number: 2, type: 'string' },
  interfaceIndex: { number: 3, type: 'int32' },
  eniId: { number: 4, type: 'string' },
} as const satisfies MessageTable;
/** ADDRESS, decoded. */
export type Address = MessageOf<typeof ADDRESS>;
/** ADDRESS to encode: missing fields get their defaults. */
export type AddressInit = InitOf<typeof ADDRESS>;

/** One route inside the Pod. */
export const ROUTE = {
  dst: { number: 1, type: 'string' },
  gw: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** ROUTE, decoded. */
export type Route = MessageOf<typeof ROUTE>;
/** ROUTE to encode: missing fields get their defaults. */
export type RouteInit = InitOf<typeof ROUTE>;

/** What an ADD made; enough to print the result of any CNI version. */
export const ATTACHMENT = {
  interfaces: { number: 1, type: 'message', message: INTERFACE, repeated: true },
  ips: { number: 2, type: 'message', message: ADDRESS, repeated: true },
  routes: { number: 3, type: 'message', message: ROUTE, repeated: true },
} as const satisfies MessageTable;
/** ATTACHMENT, decoded. */
export type Attachment = MessageOf<typeof ATTACHMENT>;
/** ATTACHMENT to encode: missing fields get their defaults. */
export type AttachmentInit = InitOf<typeof ATTACHMENT>;

/** CNI specification, section "Error": codes 1-99 are the specification's, 100 and above ours. */
export const CNI_ERROR = {
  code: { number: 1, type: 'uint32' },
  msg: { number: 2, type: 'string' },
  details: { number: 3, type: 'string' },
} as const satisfies MessageTable;
/** CNI_ERROR, decoded. */
export type CniError = MessageOf<typeof CNI_ERROR>;
/** CNI_ERROR to encode: missing fields get their defaults. */
export type CniErrorInit = InitOf<typeof CNI_ERROR>;

/** A network that is none of ours. */
export const DELEGATE = {
  network: { number: 1, type: 'string' },
  confDir: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** DELEGATE, decoded. */
export type Delegate = MessageOf<typeof DELEGATE>;
/** DELEGATE to encode: missing fields get their defaults. */
export type DelegateInit = InitOf<typeof DELEGATE>;

/** Reply to AttachRequest: an attachment or an error, never both. */
export const ATTACH_REPLY = {
  attachment: { number: 1, type: 'message', message: ATTACHMENT, oneof: 'outcome' },
  error: { number: 2, type: 'message', message: CNI_ERROR, oneof: 'outcome' },
  agentVersion: { number: 3, type: 'string' },
  delegate: { number: 4, type: 'message', message: DELEGATE },
} as const satisfies MessageTable;
/** ATTACH_REPLY, decoded. */
export type AttachReply = MessageOf<typeof ATTACH_REPLY>;
/** ATTACH_REPLY to encode: missing fields get their defaults. */
export type AttachReplyInit = InitOf<typeof ATTACH_REPLY>;

/** Requests that wiring and address are released. */
export const DETACH_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  clientVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;
/** DETACH_REQUEST, decoded. */
export type DetachRequest = MessageOf<typeof DETACH_REQUEST>;
/** DETACH_REQUEST to encode: missing fields get their defaults. */
export type DetachRequestInit = InitOf<typeof DETACH_REQUEST>;

/** Reply to DetachRequest; no error means success. */
export const DETACH_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  agentVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** DETACH_REPLY, decoded. */
export type DetachReply = MessageOf<typeof DETACH_REPLY>;
/** DETACH_REPLY to encode: missing fields get their defaults. */
export type DetachReplyInit = InitOf<typeof DETACH_REPLY>;

/** Requests a comparison of an attachment with the kernel. */
export const CHECK_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  sandbox: { number: 2, type: 'message', message: SANDBOX },
  network: { number: 3, type: 'string' },
  prevResult: { number: 4, type: 'bytes' },
  clientVersion: { number: 5, type: 'string' },
} as const satisfies MessageTable;
/** CHECK_REQUEST, decoded. */
export type CheckRequest = MessageOf<typeof CHECK_REQUEST>;
/** CHECK_REQUEST to encode: missing fields get their defaults. */
export type CheckRequestInit = InitOf<typeof CHECK_REQUEST>;

/** Reply to CheckRequest with every difference. */
export const CHECK_REPLY = {
  differences: { number: 1, type: 'string', repeated: true },
  error: { number: 2, type: 'message', message: CNI_ERROR },
  agentVersion: { number: 3, type: 'string' },
  attachment: { number: 4, type: 'message', message: ATTACHMENT },
} as const satisfies MessageTable;
/** CHECK_REPLY, decoded. */
export type CheckReply = MessageOf<typeof CHECK_REPLY>;
/** CHECK_REPLY to encode: missing fields get their defaults. */
export type CheckReplyInit = InitOf<typeof CHECK_REPLY>;

/** Asks whether an ADD could be served now. */
export const STATUS_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  clientVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** STATUS_REQUEST, decoded. */
export type StatusRequest = MessageOf<typeof STATUS_REQUEST>;
/** STATUS_REQUEST to encode: missing fields get their defaults. */
export type StatusRequestInit = InitOf<typeof STATUS_REQUEST>;

/** Reply to StatusRequest; no error means that an ADD could be served. */
export const STATUS_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  agentVersion: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** STATUS_REPLY, decoded. */
export type StatusReply = MessageOf<typeof STATUS_REPLY>;
/** STATUS_REPLY to encode: missing fields get their defaults. */
export type StatusReplyInit = InitOf<typeof STATUS_REPLY>;

/** An attachment that the runtime still has. */
export const VALID_ATTACHMENT = {
  containerId: { number: 1, type: 'string' },
  ifName: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** VALID_ATTACHMENT, decoded. */
export type ValidAttachment = MessageOf<typeof VALID_ATTACHMENT>;
/** VALID_ATTACHMENT to encode: missing fields get their defaults. */
export type ValidAttachmentInit = InitOf<typeof VALID_ATTACHMENT>;

/** Requests the release of every attachment of a network that is not listed. */
export const GC_REQUEST = {
  plugin: { number: 1, type: 'enum' },
  network: { number: 2, type: 'string' },
  validAttachments: { number: 3, type: 'message', message: VALID_ATTACHMENT, repeated: true },
  clientVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;
/** GC_REQUEST, decoded. */
export type GcRequest = MessageOf<typeof GC_REQUEST>;
/** GC_REQUEST to encode: missing fields get their defaults. */
export type GcRequestInit = InitOf<typeof GC_REQUEST>;

/** Reply to GcRequest. */
export const GC_REPLY = {
  error: { number: 1, type: 'message', message: CNI_ERROR },
  released: { number: 2, type: 'uint32' },
  agentVersion: { number: 3, type: 'string' },
} as const satisfies MessageTable;
/** GC_REPLY, decoded. */
export type GcReply = MessageOf<typeof GC_REPLY>;
/** GC_REPLY to encode: missing fields get their defaults. */
export type GcReplyInit = InitOf<typeof GC_REPLY>;

/** A call as the container runtime made it. */
export const RUN_REQUEST = {
  name: { number: 1, type: 'string' },
  env: { number: 2, type: 'string', repeated: true },
  stdin: { number: 3, type: 'bytes' },
} as const satisfies MessageTable;
/** RUN_REQUEST, decoded. */
export type RunRequest = MessageOf<typeof RUN_REQUEST>;
/** RUN_REQUEST to encode: missing fields get their defaults. */
export type RunRequestInit = InitOf<typeof RUN_REQUEST>;

/**
 * What the launcher of the executables does with its call.
 * The numbers of `enum Outcome`.
 */
export const OUTCOME = {
  OUTCOME_UNSPECIFIED: 0,
  OUTCOME_PRINT: 1,
  OUTCOME_RUN_YOURSELF: 2,
} as const;
/** One of OUTCOME. A decoded message may hold a number of a later release; therefore its field is a plain number. */
export type Outcome = (typeof OUTCOME)[keyof typeof OUTCOME];

/** Reply to RunRequest. */
export const RUN_REPLY = {
  outcome: { number: 1, type: 'enum' },
  exitCode: { number: 2, type: 'uint32' },
  stdout: { number: 3, type: 'bytes' },
  agentVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;
/** RUN_REPLY, decoded. */
export type RunReply = MessageOf<typeof RUN_REPLY>;
/** RUN_REPLY to encode: missing fields get their defaults. */
export type RunReplyInit = InitOf<typeof RUN_REPLY>;
