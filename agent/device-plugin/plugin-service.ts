import type { ServiceDefinition } from '@grpc/grpc-js';
import { decodeMessage, encodeMessage, type InitOf, type MessageTable } from '../api/codec.ts';
import {
  ALLOCATE_REQUEST,
  ALLOCATE_RESPONSE,
  DEVICE_PLUGIN_OPTIONS,
  EMPTY,
  LIST_AND_WATCH_RESPONSE,
} from './kubelet-messages.ts';

/** Describes `service DevicePlugin` in the shape that the gRPC library asks for. */
export const DEVICE_PLUGIN_SERVICE: ServiceDefinition = {
  getDevicePluginOptions: call('GetDevicePluginOptions', EMPTY, DEVICE_PLUGIN_OPTIONS),
  listAndWatch: { ...call('ListAndWatch', EMPTY, LIST_AND_WATCH_RESPONSE), responseStream: true },
  allocate: call('Allocate', ALLOCATE_REQUEST, ALLOCATE_RESPONSE),
  preStartContainer: call('PreStartContainer', EMPTY, EMPTY),
};

function call(name: string, request: MessageTable, response: MessageTable): ServiceDefinition[string] {
  return {
    path: `/v1beta1.DevicePlugin/${name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message: InitOf<MessageTable>) => encodeMessage(request, message),
    requestDeserialize: (bytes: Buffer) => decodeMessage(request, bytes),
    responseSerialize: (message: InitOf<MessageTable>) => encodeMessage(response, message),
    responseDeserialize: (bytes: Buffer) => decodeMessage(response, bytes),
  };
}
