// Made from cri.proto by tools/gen-messages.ts; run: make gen
import type { InitOf, MessageOf, MessageTable } from '../api/codec.ts';

/** Requests all sandboxes. */
export const LIST_POD_SANDBOX_REQUEST = {} as const satisfies MessageTable;
/** LIST_POD_SANDBOX_REQUEST, decoded. */
export type ListPodSandboxRequest = MessageOf<typeof LIST_POD_SANDBOX_REQUEST>;
/** LIST_POD_SANDBOX_REQUEST to encode: missing fields get their defaults. */
export type ListPodSandboxRequestInit = InitOf<typeof LIST_POD_SANDBOX_REQUEST>;

/** The Pod of a sandbox. */
export const POD_SANDBOX_METADATA = {
  name: { number: 1, type: 'string' },
  uid: { number: 2, type: 'string' },
  namespace: { number: 3, type: 'string' },
} as const satisfies MessageTable;
/** POD_SANDBOX_METADATA, decoded. */
export type PodSandboxMetadata = MessageOf<typeof POD_SANDBOX_METADATA>;
/** POD_SANDBOX_METADATA to encode: missing fields get their defaults. */
export type PodSandboxMetadataInit = InitOf<typeof POD_SANDBOX_METADATA>;

/**
 * The states of a sandbox.
 * The numbers of `enum PodSandboxState`.
 */
export const POD_SANDBOX_STATE = {
  SANDBOX_READY: 0,
  SANDBOX_NOTREADY: 1,
} as const;
/** One of POD_SANDBOX_STATE. A decoded message may hold a number of a later release; therefore its field is a plain number. */
export type PodSandboxState = (typeof POD_SANDBOX_STATE)[keyof typeof POD_SANDBOX_STATE];

/** A sandbox in a list. */
export const POD_SANDBOX = {
  id: { number: 1, type: 'string' },
  metadata: { number: 2, type: 'message', message: POD_SANDBOX_METADATA },
  state: { number: 3, type: 'enum' },
  runtimeHandler: { number: 7, type: 'string' },
} as const satisfies MessageTable;
/** POD_SANDBOX, decoded. */
export type PodSandbox = MessageOf<typeof POD_SANDBOX>;
/** POD_SANDBOX to encode: missing fields get their defaults. */
export type PodSandboxInit = InitOf<typeof POD_SANDBOX>;

/** A list of sandboxes. */
export const LIST_POD_SANDBOX_RESPONSE = {
  items: { number: 1, type: 'message', message: POD_SANDBOX, repeated: true },
} as const satisfies MessageTable;
/** LIST_POD_SANDBOX_RESPONSE, decoded. */
export type ListPodSandboxResponse = MessageOf<typeof LIST_POD_SANDBOX_RESPONSE>;
/** LIST_POD_SANDBOX_RESPONSE to encode: missing fields get their defaults. */
export type ListPodSandboxResponseInit = InitOf<typeof LIST_POD_SANDBOX_RESPONSE>;

/** Requests one sandbox. */
export const POD_SANDBOX_STATUS_REQUEST = {
  podSandboxId: { number: 1, type: 'string' },
  verbose: { number: 2, type: 'bool' },
} as const satisfies MessageTable;
/** POD_SANDBOX_STATUS_REQUEST, decoded. */
export type PodSandboxStatusRequest = MessageOf<typeof POD_SANDBOX_STATUS_REQUEST>;
/** POD_SANDBOX_STATUS_REQUEST to encode: missing fields get their defaults. */
export type PodSandboxStatusRequestInit = InitOf<typeof POD_SANDBOX_STATUS_REQUEST>;

/** A further address of a sandbox. */
export const POD_IP = {
  ip: { number: 1, type: 'string' },
} as const satisfies MessageTable;
/** POD_IP, decoded. */
export type PodIP = MessageOf<typeof POD_IP>;
/** POD_IP to encode: missing fields get their defaults. */
export type PodIPInit = InitOf<typeof POD_IP>;

/** The addresses of a sandbox. */
export const POD_SANDBOX_NETWORK_STATUS = {
  ip: { number: 1, type: 'string' },
  additionalIps: { number: 2, type: 'message', message: POD_IP, repeated: true },
} as const satisfies MessageTable;
/** POD_SANDBOX_NETWORK_STATUS, decoded. */
export type PodSandboxNetworkStatus = MessageOf<typeof POD_SANDBOX_NETWORK_STATUS>;
/** POD_SANDBOX_NETWORK_STATUS to encode: missing fields get their defaults. */
export type PodSandboxNetworkStatusInit = InitOf<typeof POD_SANDBOX_NETWORK_STATUS>;

/** A sandbox, with its addresses. */
export const POD_SANDBOX_STATUS = {
  id: { number: 1, type: 'string' },
  metadata: { number: 2, type: 'message', message: POD_SANDBOX_METADATA },
  state: { number: 3, type: 'enum' },
  network: { number: 5, type: 'message', message: POD_SANDBOX_NETWORK_STATUS },
} as const satisfies MessageTable;
/** POD_SANDBOX_STATUS, decoded. */
export type PodSandboxStatus = MessageOf<typeof POD_SANDBOX_STATUS>;
/** POD_SANDBOX_STATUS to encode: missing fields get their defaults. */
export type PodSandboxStatusInit = InitOf<typeof POD_SANDBOX_STATUS>;

/** map<string, string> is this on the wire. */
export const INFO_ENTRY = {
  key: { number: 1, type: 'string' },
  value: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** INFO_ENTRY, decoded. */
export type InfoEntry = MessageOf<typeof INFO_ENTRY>;
/** INFO_ENTRY to encode: missing fields get their defaults. */
export type InfoEntryInit = InitOf<typeof INFO_ENTRY>;

/** One sandbox. `info` is defined by the runtime; its values are JSON texts. */
export const POD_SANDBOX_STATUS_RESPONSE = {
  status: { number: 1, type: 'message', message: POD_SANDBOX_STATUS },
  info: { number: 2, type: 'message', message: INFO_ENTRY, repeated: true },
} as const satisfies MessageTable;
/** POD_SANDBOX_STATUS_RESPONSE, decoded. */
export type PodSandboxStatusResponse = MessageOf<typeof POD_SANDBOX_STATUS_RESPONSE>;
/** POD_SANDBOX_STATUS_RESPONSE to encode: missing fields get their defaults. */
export type PodSandboxStatusResponseInit = InitOf<typeof POD_SANDBOX_STATUS_RESPONSE>;
