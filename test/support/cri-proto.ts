import protobuf from 'protobufjs';

/**
 * The part of the Kubernetes container runtime interface that tests speak. Read by protobufjs and not by the agent's own
 * codec, so that the two judge each other.
 * @see https://github.com/kubernetes/cri-api pkg/apis/runtime/v1/api.proto
 */
const CRI_PROTO = `
syntax = "proto3";
package runtime.v1;
message VersionRequest { string version = 1; }
message VersionResponse {
  string version = 1; string runtime_name = 2; string runtime_version = 3; string runtime_api_version = 4;
}
message StatusRequest { bool verbose = 1; }
message StatusResponse { RuntimeStatus status = 1; map<string, string> info = 2; }
message RuntimeStatus { repeated RuntimeCondition conditions = 1; }
message RuntimeCondition { string type = 1; bool status = 2; string reason = 3; string message = 4; }
message PodSandboxMetadata { string name = 1; string uid = 2; string namespace = 3; uint32 attempt = 4; }
message PortMapping { Protocol protocol = 1; int32 container_port = 2; int32 host_port = 3; string host_ip = 4; }
enum Protocol { TCP = 0; UDP = 1; SCTP = 2; }
message LinuxPodSandboxConfig { string cgroup_parent = 1; }
message PodSandboxConfig {
  PodSandboxMetadata metadata = 1; string hostname = 2; string log_directory = 3;
  repeated PortMapping port_mappings = 5; map<string, string> labels = 6; map<string, string> annotations = 7;
  LinuxPodSandboxConfig linux = 8;
}
message RunPodSandboxRequest { PodSandboxConfig config = 1; string runtime_handler = 2; }
message RunPodSandboxResponse { string pod_sandbox_id = 1; }
message StopPodSandboxRequest { string pod_sandbox_id = 1; }
message StopPodSandboxResponse {}
message RemovePodSandboxRequest { string pod_sandbox_id = 1; }
message RemovePodSandboxResponse {}
enum PodSandboxState { SANDBOX_READY = 0; SANDBOX_NOTREADY = 1; }
message PodSandbox {
  string id = 1; PodSandboxMetadata metadata = 2; PodSandboxState state = 3; int64 created_at = 4;
  map<string, string> labels = 5; map<string, string> annotations = 6; string runtime_handler = 7;
}
message ListPodSandboxRequest {}
message ListPodSandboxResponse { repeated PodSandbox items = 1; }
message PodIP { string ip = 1; }
message PodSandboxNetworkStatus { string ip = 1; repeated PodIP additional_ips = 2; }
message PodSandboxStatus {
  string id = 1; PodSandboxMetadata metadata = 2; PodSandboxState state = 3; int64 created_at = 4;
  PodSandboxNetworkStatus network = 5;
}
message PodSandboxStatusRequest { string pod_sandbox_id = 1; bool verbose = 2; }
message PodSandboxStatusResponse { PodSandboxStatus status = 1; map<string, string> info = 2; }
message ImageSpec { string image = 1; }
message ContainerMetadata { string name = 1; uint32 attempt = 2; }
message ContainerConfig {
  ContainerMetadata metadata = 1; ImageSpec image = 2; repeated string command = 3; repeated string args = 4;
  string log_path = 11;
}
message CreateContainerRequest { string pod_sandbox_id = 1; ContainerConfig config = 2; PodSandboxConfig sandbox_config = 3; }
message CreateContainerResponse { string container_id = 1; }
message StartContainerRequest { string container_id = 1; }
message StartContainerResponse {}
message ExecSyncRequest { string container_id = 1; repeated string cmd = 2; int64 timeout = 3; }
message ExecSyncResponse { bytes stdout = 1; bytes stderr = 2; int32 exit_code = 3; }
`;

const root = protobuf.parse(CRI_PROTO, { keepCase: false }).root;

/** A message as plain data, names in camel case. */
export type CriMessage = Readonly<Record<string, unknown>>;

/** Encodes a message: `encodeCri('VersionRequest', {version: 'v1'})`. */
export function encodeCri(type: string, message: CriMessage): Buffer {
  const found = root.lookupType(`runtime.v1.${type}`);
  return Buffer.from(found.encode(found.fromObject(message)).finish());
}

/** Decodes a message to plain data; absent fields have their default. */
export function decodeCri(type: string, bytes: Uint8Array): CriMessage {
  const found = root.lookupType(`runtime.v1.${type}`);
  return found.toObject(found.decode(bytes), { defaults: true, longs: Number, enums: String });
}

/** gRPC path of a method of the runtime service. */
export function criPath(method: string): string {
  return `/runtime.v1.RuntimeService/${method}`;
}
