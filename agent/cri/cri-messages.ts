import type { MessageTable } from '../api/codec.ts';

// The tables of cri.proto, in its order.

/** Requests the name and versions of the runtime. */
export const VERSION_REQUEST = { version: { number: 1, type: 'string' } } as const satisfies MessageTable;

/** Name and versions of the runtime. */
export const VERSION_RESPONSE = {
  version: { number: 1, type: 'string' },
  runtimeName: { number: 2, type: 'string' },
  runtimeVersion: { number: 3, type: 'string' },
  runtimeApiVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** The Pod of a sandbox. */
const POD_SANDBOX_METADATA = {
  name: { number: 1, type: 'string' },
  uid: { number: 2, type: 'string' },
  namespace: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** The numbers of `enum PodSandboxState`. */
export const POD_SANDBOX_STATE = { SANDBOX_READY: 0, SANDBOX_NOTREADY: 1 } as const;

/** A sandbox in a list. */
const POD_SANDBOX = {
  id: { number: 1, type: 'string' },
  metadata: { number: 2, type: 'message', message: POD_SANDBOX_METADATA },
  state: { number: 3, type: 'enum' },
} as const satisfies MessageTable;

/** Requests all sandboxes. */
export const LIST_POD_SANDBOX_REQUEST = {} as const satisfies MessageTable;

/** A list of sandboxes. */
export const LIST_POD_SANDBOX_RESPONSE = {
  items: { number: 1, type: 'message', message: POD_SANDBOX, repeated: true },
} as const satisfies MessageTable;

/** Requests one sandbox. */
export const POD_SANDBOX_STATUS_REQUEST = {
  podSandboxId: { number: 1, type: 'string' },
  verbose: { number: 2, type: 'bool' },
} as const satisfies MessageTable;

const POD_IP = { ip: { number: 1, type: 'string' } } as const satisfies MessageTable;

/** The addresses of a sandbox. */
const POD_SANDBOX_NETWORK_STATUS = {
  ip: { number: 1, type: 'string' },
  additionalIps: { number: 2, type: 'message', message: POD_IP, repeated: true },
} as const satisfies MessageTable;

const POD_SANDBOX_STATUS = {
  id: { number: 1, type: 'string' },
  metadata: { number: 2, type: 'message', message: POD_SANDBOX_METADATA },
  state: { number: 3, type: 'enum' },
  network: { number: 5, type: 'message', message: POD_SANDBOX_NETWORK_STATUS },
} as const satisfies MessageTable;

const INFO_ENTRY = {
  key: { number: 1, type: 'string' },
  value: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** One sandbox. `info` is defined by the runtime; its values are JSON texts. */
export const POD_SANDBOX_STATUS_RESPONSE = {
  status: { number: 1, type: 'message', message: POD_SANDBOX_STATUS },
  info: { number: 2, type: 'message', message: INFO_ENTRY, repeated: true },
} as const satisfies MessageTable;
