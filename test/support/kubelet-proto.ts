import protobuf from 'protobufjs';

/**
 * The part of kubelet's device plugin API and pod resources API that tests speak. Read by protobufjs and not by the
 * agent's own codec, so that the two judge each other.
 * @see https://github.com/kubernetes/kubelet pkg/apis/deviceplugin/v1beta1/api.proto, pkg/apis/podresources/v1/api.proto
 */
const KUBELET_PROTO = `
syntax = "proto3";
package v1beta1;
message DevicePluginOptions { bool pre_start_required = 1; bool get_preferred_allocation_available = 2; }
message RegisterRequest { string version = 1; string endpoint = 2; string resource_name = 3; DevicePluginOptions options = 4; }
message Empty {}
message ListAndWatchResponse { repeated Device devices = 1; }
message TopologyInfo { repeated NUMANode nodes = 1; }
message NUMANode { int64 ID = 1; }
message Device { string ID = 1; string health = 2; TopologyInfo topology = 3; }
message PreStartContainerRequest { repeated string devices_ids = 1; }
message PreStartContainerResponse {}
message AllocateRequest { repeated ContainerAllocateRequest container_requests = 1; }
message ContainerAllocateRequest { repeated string devices_ids = 1; }
message AllocateResponse { repeated ContainerAllocateResponse container_responses = 1; }
message ContainerAllocateResponse {
  map<string, string> envs = 1; repeated Mount mounts = 2; repeated DeviceSpec devices = 3; map<string, string> annotations = 4;
}
message Mount { string container_path = 1; string host_path = 2; bool read_only = 3; }
message DeviceSpec { string container_path = 1; string host_path = 2; string permissions = 3; }
message ListPodResourcesRequest {}
message ListPodResourcesResponse { repeated PodResources pod_resources = 1; }
message PodResources { string name = 1; string namespace = 2; repeated ContainerResources containers = 3; }
message ContainerResources { string name = 1; repeated ContainerDevices devices = 2; repeated int64 cpu_ids = 3; }
message ContainerDevices { string resource_name = 1; repeated string device_ids = 2; TopologyInfo topology = 3; }
`;

const root = protobuf.parse(KUBELET_PROTO, { keepCase: true }).root;

/** A message as plain data, names as in the proto. */
export type KubeletMessage = Readonly<Record<string, unknown>>;

/** Describes one call for a gRPC server or client of tests. */
export function kubeletCall(path: string, request: string, response: string, responseStream = false) {
  return {
    path,
    requestStream: false,
    responseStream,
    requestSerialize: (message: KubeletMessage) => encode(request, message),
    requestDeserialize: (bytes: Buffer) => decode(request, bytes),
    responseSerialize: (message: KubeletMessage) => encode(response, message),
    responseDeserialize: (bytes: Buffer) => decode(response, bytes),
  };
}

function encode(type: string, message: KubeletMessage): Buffer {
  const found = root.lookupType(`v1beta1.${type}`);
  return Buffer.from(found.encode(found.fromObject(message)).finish());
}

function decode(type: string, bytes: Uint8Array): KubeletMessage {
  const found = root.lookupType(`v1beta1.${type}`);
  return found.toObject(found.decode(bytes), { defaults: true, longs: Number });
}
