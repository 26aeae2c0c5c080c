// Made from kubelet.proto by tools/gen-messages.ts; run: make gen
import type { InitOf, MessageOf, MessageTable } from '../api/codec.ts';

/** A message without fields. */
export const EMPTY = {} as const satisfies MessageTable;
/** EMPTY, decoded. */
export type Empty = MessageOf<typeof EMPTY>;
/** EMPTY to encode: missing fields get their defaults. */
export type EmptyInit = InitOf<typeof EMPTY>;

/** The optional calls that kubelet should make. */
export const DEVICE_PLUGIN_OPTIONS = {
  preStartRequired: { number: 1, type: 'bool' },
  getPreferredAllocationAvailable: { number: 2, type: 'bool' },
} as const satisfies MessageTable;
/** DEVICE_PLUGIN_OPTIONS, decoded. */
export type DevicePluginOptions = MessageOf<typeof DEVICE_PLUGIN_OPTIONS>;
/** DEVICE_PLUGIN_OPTIONS to encode: missing fields get their defaults. */
export type DevicePluginOptionsInit = InitOf<typeof DEVICE_PLUGIN_OPTIONS>;

/** Registers a plugin with kubelet. */
export const REGISTER_REQUEST = {
  version: { number: 1, type: 'string' },
  endpoint: { number: 2, type: 'string' },
  resourceName: { number: 3, type: 'string' },
  options: { number: 4, type: 'message', message: DEVICE_PLUGIN_OPTIONS },
} as const satisfies MessageTable;
/** REGISTER_REQUEST, decoded. */
export type RegisterRequest = MessageOf<typeof REGISTER_REQUEST>;
/** REGISTER_REQUEST to encode: missing fields get their defaults. */
export type RegisterRequestInit = InitOf<typeof REGISTER_REQUEST>;

/** One device. */
export const DEVICE = {
  id: { number: 1, type: 'string' },
  health: { number: 2, type: 'string' },
} as const satisfies MessageTable;
/** DEVICE, decoded. */
export type Device = MessageOf<typeof DEVICE>;
/** DEVICE to encode: missing fields get their defaults. */
export type DeviceInit = InitOf<typeof DEVICE>;

/** All devices. */
export const LIST_AND_WATCH_RESPONSE = {
  devices: { number: 1, type: 'message', message: DEVICE, repeated: true },
} as const satisfies MessageTable;
/** LIST_AND_WATCH_RESPONSE, decoded. */
export type ListAndWatchResponse = MessageOf<typeof LIST_AND_WATCH_RESPONSE>;
/** LIST_AND_WATCH_RESPONSE to encode: missing fields get their defaults. */
export type ListAndWatchResponseInit = InitOf<typeof LIST_AND_WATCH_RESPONSE>;

/** The devices that one container gets. */
export const CONTAINER_ALLOCATE_REQUEST = {
  deviceIds: { number: 1, type: 'string', repeated: true },
} as const satisfies MessageTable;
/** CONTAINER_ALLOCATE_REQUEST, decoded. */
export type ContainerAllocateRequest = MessageOf<typeof CONTAINER_ALLOCATE_REQUEST>;
/** CONTAINER_ALLOCATE_REQUEST to encode: missing fields get their defaults. */
export type ContainerAllocateRequestInit = InitOf<typeof CONTAINER_ALLOCATE_REQUEST>;

/** Allocates devices to containers. */
export const ALLOCATE_REQUEST = {
  containerRequests: { number: 1, type: 'message', message: CONTAINER_ALLOCATE_REQUEST, repeated: true },
} as const satisfies MessageTable;
/** ALLOCATE_REQUEST, decoded. */
export type AllocateRequest = MessageOf<typeof ALLOCATE_REQUEST>;
/** ALLOCATE_REQUEST to encode: missing fields get their defaults. */
export type AllocateRequestInit = InitOf<typeof ALLOCATE_REQUEST>;

/** What a container gets with its devices: nothing here. */
export const CONTAINER_ALLOCATE_RESPONSE = {} as const satisfies MessageTable;
/** CONTAINER_ALLOCATE_RESPONSE, decoded. */
export type ContainerAllocateResponse = MessageOf<typeof CONTAINER_ALLOCATE_RESPONSE>;
/** CONTAINER_ALLOCATE_RESPONSE to encode: missing fields get their defaults. */
export type ContainerAllocateResponseInit = InitOf<typeof CONTAINER_ALLOCATE_RESPONSE>;

/** Reply to AllocateRequest. */
export const ALLOCATE_RESPONSE = {
  containerResponses: { number: 1, type: 'message', message: CONTAINER_ALLOCATE_RESPONSE, repeated: true },
} as const satisfies MessageTable;
/** ALLOCATE_RESPONSE, decoded. */
export type AllocateResponse = MessageOf<typeof ALLOCATE_RESPONSE>;
/** ALLOCATE_RESPONSE to encode: missing fields get their defaults. */
export type AllocateResponseInit = InitOf<typeof ALLOCATE_RESPONSE>;

/** The devices of a container that is about to start. */
export const PRE_START_CONTAINER_REQUEST = {
  deviceIds: { number: 1, type: 'string', repeated: true },
} as const satisfies MessageTable;
/** PRE_START_CONTAINER_REQUEST, decoded. */
export type PreStartContainerRequest = MessageOf<typeof PRE_START_CONTAINER_REQUEST>;
/** PRE_START_CONTAINER_REQUEST to encode: missing fields get their defaults. */
export type PreStartContainerRequestInit = InitOf<typeof PRE_START_CONTAINER_REQUEST>;

/** Reply to PreStartContainerRequest. */
export const PRE_START_CONTAINER_RESPONSE = {} as const satisfies MessageTable;
/** PRE_START_CONTAINER_RESPONSE, decoded. */
export type PreStartContainerResponse = MessageOf<typeof PRE_START_CONTAINER_RESPONSE>;
/** PRE_START_CONTAINER_RESPONSE to encode: missing fields get their defaults. */
export type PreStartContainerResponseInit = InitOf<typeof PRE_START_CONTAINER_RESPONSE>;

/** Requests the devices that each Pod holds. */
export const LIST_POD_RESOURCES_REQUEST = {} as const satisfies MessageTable;
/** LIST_POD_RESOURCES_REQUEST, decoded. */
export type ListPodResourcesRequest = MessageOf<typeof LIST_POD_RESOURCES_REQUEST>;
/** LIST_POD_RESOURCES_REQUEST to encode: missing fields get their defaults. */
export type ListPodResourcesRequestInit = InitOf<typeof LIST_POD_RESOURCES_REQUEST>;

/** Devices of one resource that a container holds. */
export const CONTAINER_DEVICES = {
  resourceName: { number: 1, type: 'string' },
  deviceIds: { number: 2, type: 'string', repeated: true },
} as const satisfies MessageTable;
/** CONTAINER_DEVICES, decoded. */
export type ContainerDevices = MessageOf<typeof CONTAINER_DEVICES>;
/** CONTAINER_DEVICES to encode: missing fields get their defaults. */
export type ContainerDevicesInit = InitOf<typeof CONTAINER_DEVICES>;

/** The devices of one container. */
export const CONTAINER_RESOURCES = {
  name: { number: 1, type: 'string' },
  devices: { number: 2, type: 'message', message: CONTAINER_DEVICES, repeated: true },
} as const satisfies MessageTable;
/** CONTAINER_RESOURCES, decoded. */
export type ContainerResources = MessageOf<typeof CONTAINER_RESOURCES>;
/** CONTAINER_RESOURCES to encode: missing fields get their defaults. */
export type ContainerResourcesInit = InitOf<typeof CONTAINER_RESOURCES>;

/** The devices of one Pod. */
export const POD_RESOURCES = {
  name: { number: 1, type: 'string' },
  namespace: { number: 2, type: 'string' },
  containers: { number: 3, type: 'message', message: CONTAINER_RESOURCES, repeated: true },
} as const satisfies MessageTable;
/** POD_RESOURCES, decoded. */
export type PodResources = MessageOf<typeof POD_RESOURCES>;
/** POD_RESOURCES to encode: missing fields get their defaults. */
export type PodResourcesInit = InitOf<typeof POD_RESOURCES>;

/** The devices that each Pod holds. */
export const LIST_POD_RESOURCES_RESPONSE = {
  podResources: { number: 1, type: 'message', message: POD_RESOURCES, repeated: true },
} as const satisfies MessageTable;
/** LIST_POD_RESOURCES_RESPONSE, decoded. */
export type ListPodResourcesResponse = MessageOf<typeof LIST_POD_RESOURCES_RESPONSE>;
/** LIST_POD_RESOURCES_RESPONSE to encode: missing fields get their defaults. */
export type ListPodResourcesResponseInit = InitOf<typeof LIST_POD_RESOURCES_RESPONSE>;
