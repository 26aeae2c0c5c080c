/** Values that the kubelet wants; it writes those that differ. @see k8s.io/component-helpers/node/util/sysctl */
const KUBELET_SYSCTLS = {
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'kernel/keys/root_maxkeys': 1_000_000,
  'kernel/keys/root_maxbytes': 25_000_000,
} as const;

/** Where a node has the executables of Kubernetes. */
export const NODE_KUBE_DIR = '/var/lib/kubernetes/bin';

/**
 * Lists lines for sh, run once before the first boot, that make a node's disk in `dir`: /etc as the machine's, without a
 * CNI configuration, /opt and /var empty.
 */
export function diskLines(dir: string): readonly string[] {
  return [
    `mkdir -p ${dir}/etc ${dir}/opt/cni/bin`,
    `mkdir -p ${dir}/var/lib/kubelet ${dir}/var/lib/containerd ${dir}/var/lib/cni ${dir}/var${NODE_KUBE_DIR.slice(4)}`,
    `mkdir -p ${dir}/var/log/pods ${dir}/var/log/containers ${dir}/var/cache`,
    `mkdir -m 1777 ${dir}/var/tmp`,
    `ln -s /run ${dir}/var/run`,
    // Others may make and remove mount points there meanwhile: what vanishes is not missed.
    `tar -C /etc --ignore-failed-read -cf - . | tar -C ${dir}/etc -xf -`,
    `rm -rf ${dir}/etc/cni ${dir}/etc/containerd ${dir}/etc/kubernetes ${dir}/etc/tke-eni`,
    `mkdir -p ${dir}/etc/cni/net.d ${dir}/etc/containerd ${dir}/etc/kubernetes/manifests`,
  ];
}

/**
 * Lists lines for sh, run at each boot in the node's namespaces, that put its disk in place, an empty /run, a /sys of its
 * network, and what keeps the kubelet from setting sysctls of the whole machine.
 */
export function bootLines(dir: string, kubeAssets: string): readonly string[] {
  const sysctls = Object.entries(KUBELET_SYSCTLS).flatMap(([name, value]) => {
    const file = `/run/machine-sysctls/${name.replaceAll('/', '.')}`;
    // What the kubelet reads is what it wants, so it writes nothing.
    return [`echo ${value} > ${file}`, `test ! -e /proc/sys/${name} || mount --bind ${file} /proc/sys/${name}`];
  });
  return [
    // The executables first: they may lie in a folder that is covered next.
    `mount --bind ${kubeAssets} ${dir}/var${NODE_KUBE_DIR.slice(4)}`,
    `mount --bind ${dir}/etc /etc`,
    `mount --bind ${dir}/opt /opt`,
    'mkdir -p /opt/cni/bin',
    `mount --rbind ${dir}/var /var`,
    'mount -t tmpfs -o mode=755 run /run',
    'mkdir -p /run/netns /run/containerd /run/lock /run/machine-sysctls /run/cgroup',
    // A /sys made here shows this network namespace; the cgroups are under the old one.
    'mount --rbind /sys/fs/cgroup /run/cgroup',
    'mount -t sysfs sysfs /sys',
    'mount --rbind /run/cgroup /sys/fs/cgroup',
    'umount -l /run/cgroup',
    'rmdir /run/cgroup',
    ...sysctls,
    // So that mounts of the node and of its containers see each other.
    'mount --make-rshared /',
  ];
}
