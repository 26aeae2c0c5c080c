/** Settings of containerd that work in a test node: default paths, one small image, no systemd, any file system. */
export function containerdConfig(sandboxImage: string): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[${cri}]
  sandbox_image = "${sandboxImage}"
  stream_server_address = "127.0.0.1"
  disable_apparmor = true
  # Machines without CAP_SYS_RESOURCE may not lower it.
  restrict_oom_score_adj = true
  [${cri}.containerd]
    # Copies instead of overlays: works on any file system, and the image is small.
    snapshotter = "native"
    default_runtime_name = "runc"
    [${cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [${cri}.containerd.runtimes.runc.options]
        SystemdCgroup = false
  [${cri}.cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
`;
}
