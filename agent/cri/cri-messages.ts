import type { MessageTable } from '../api/codec.ts';

// The tables of cri.proto, in its order.

/** Asks who answers. */
export const VERSION_REQUEST = { version: { number: 1, type: 'string' } } as const satisfies MessageTable;

/** Names the runtime. */
export const VERSION_RESPONSE = {
  version: { number: 1, type: 'string' },
  runtimeName: { number: 2, type: 'string' },
  runtimeVersion: { number: 3, type: 'string' },
  runtimeApiVersion: { number: 4, type: 'string' },
} as const satisfies MessageTable;

/** Names the Pod of a sandbox. */
const POD_SANDBOX_METADATA = {
  name: { number: 1, type: 'string' },
  uid: { number: 2, type: 'string' },
  namespace: { number: 3, type: 'string' },
} as const satisfies MessageTable;

/** Numbers `enum PodSandboxState`. */
export const POD_SANDBOX_STATE = { SANDBOX_READY: 0, SANDBOX_NOTREADY: 1 } as const;

/** Describes a sandbox in a list. */
const POD_SANDBOX = {
  id: { number: 1, type: 'string' },
  metadata: { number: 2, type: 'message', message: POD_SANDBOX_METADATA },
  state: { number: 3, type: 'enum' },
} as const satisfies MessageTable;

/** Asks for all sandboxes. */
export const LIST_POD_SANDBOX_REQUEST = {} as const satisfies MessageTable;

/** Lists sandboxes. */
export const LIST_POD_SANDBOX_RESPONSE = {
  items: { number: 1, type: 'message', message: POD_SANDBOX, repeated: true },
} as const satisfies MessageTable;

/** Asks for one sandbox. */
export const POD_SANDBOX_STATUS_REQUEST = {
  podSandboxId: { number: 1, type: 'string' },
  verbose: { number: 2, type: 'bool' },
} as const satisfies MessageTable;

const POD_IP = { ip: { number: 1, type: 'string' } } as const satisfies MessageTable;

/** Lists a sandbox's addresses. */
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

/** Describes one sandbox; `info` is the runtime's own, as JSON texts. */
export const POD_SANDBOX_STATUS_RESPONSE = {
  status: { number: 1, type: 'message', message: POD_SANDBOX_STATUS },
  info: { number: 2, type: 'message', message: INFO_ENTRY, repeated: true },
} as const satisfies MessageTable;
