import type { MessageTable } from '../api/codec.ts';

// The tables of kubelet.proto, in its order.

/** A message without fields. */
export const EMPTY = {} as const satisfies MessageTable;

/** The optional calls that kubelet should make. */
export const DEVICE_PLUGIN_OPTIONS = {
  preStartRequired: { number: 1, type: 'bool' },
  getPreferredAllocationAvailable: { number: 2, type: 'bool' },
} as const satisfies MessageTable;

/**
 * Our choice: kubelet makes neither optional call. All devices are alike; and if an agent dies during a call that is
 * part of an admission, kubelet refuses the Pod for good.
 */
export const DEVICE_PLUGIN_CHOICES = { preStartRequired: false, getPreferredAllocationAvailable: false } as const;

/** Registers a plugin with kubelet. */
export const REGISTER_REQUEST = {
  version: { number: 1, type: 'string' },
  endpoint: { number: 2, type: 'string' },
  resourceName: { number: 3, type: 'string' },
  options: { number: 4, type: 'message', message: DEVICE_PLUGIN_OPTIONS },
} as const satisfies MessageTable;

const DEVICE = {
  id: { number: 1, type: 'string' },
  health: { number: 2, type: 'string' },
} as const satisfies MessageTable;

/** All devices. */
export const LIST_AND_WATCH_RESPONSE = {
  devices: { number: 1, type: 'message', message: DEVICE, repeated: true },
} as const satisfies MessageTable;

const CONTAINER_DEVICE_IDS = {
  deviceIds: { number: 1, type: 'string', repeated: true },
} as const satisfies MessageTable;

/** Allocates devices to containers. */
export const ALLOCATE_REQUEST = {
  containerRequests: { number: 1, type: 'message', message: CONTAINER_DEVICE_IDS, repeated: true },
} as const satisfies MessageTable;

/** What each container gets with its devices: nothing here. */
export const ALLOCATE_RESPONSE = {
  containerResponses: { number: 1, type: 'message', message: EMPTY, repeated: true },
} as const satisfies MessageTable;

const CONTAINER_DEVICES = {
  resourceName: { number: 1, type: 'string' },
  deviceIds: { number: 2, type: 'string', repeated: true },
} as const satisfies MessageTable;

const CONTAINER_RESOURCES = {
  name: { number: 1, type: 'string' },
  devices: { number: 2, type: 'message', message: CONTAINER_DEVICES, repeated: true },
} as const satisfies MessageTable;

const POD_RESOURCES = {
  name: { number: 1, type: 'string' },
  namespace: { number: 2, type: 'string' },
  containers: { number: 3, type: 'message', message: CONTAINER_RESOURCES, repeated: true },
} as const satisfies MessageTable;

/** The devices that each Pod holds. */
export const LIST_POD_RESOURCES_RESPONSE = {
  podResources: { number: 1, type: 'message', message: POD_RESOURCES, repeated: true },
} as const satisfies MessageTable;
