import { ENI_IP_TAINT, NODE_INSTANCE_LABEL } from '../../crd/names.ts';

/** What a kubelet knows of its node. */
export type KubeletFacts = {
  readonly name: string;
  readonly instanceId: string;
  readonly ip: string;
  readonly zone: string;
  readonly cores: number;
  readonly maxPods: number;
  /** Root of its cgroups, relative to every hierarchy. */
  readonly cgroup: string;
  /** Files on the node. */
  readonly clientCaFile: string;
  readonly hasEniIpTaint: boolean;
  /** Fields that win over ours. */
  readonly more: Readonly<Record<string, unknown>>;
};

/** The number that TKE has for a zone of Guangzhou: 100003 for ap-guangzhou-3. */
function zoneNumber(zone: string): string {
  return String(100_000 + Number(zone.slice(zone.lastIndexOf('-') + 1)));
}

/** Makes the kubelet's configuration; JSON, which is YAML. @see KubeletConfiguration v1beta1 */
export function kubeletConfig(facts: KubeletFacts): string {
  return JSON.stringify(
    {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
      failCgroupV1: false,
      cgroupDriver: 'cgroupfs',
      cgroupRoot: `/${facts.cgroup}`,
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: true },
        x509: { clientCAFile: facts.clientCaFile },
      },
      authorization: { mode: 'Webhook' },
      clusterDomain: 'cluster.local',
      clusterDNS: [],
      // There is no DNS; what the machine has does not lead anywhere from here.
      resolvConf: '/etc/kubernetes/resolv.conf',
      failSwapOn: false,
      maxPods: facts.maxPods,
      // As a node of the cloud has them from its bootstrap and the cloud controller manager.
      providerID: `qcloud:///${zoneNumber(facts.zone)}/${facts.instanceId}`,
      registerWithTaints: facts.hasEniIpTaint ? [ENI_IP_TAINT] : [],
      // Seconds instead of tens of seconds.
      nodeStatusUpdateFrequency: '2s',
      syncFrequency: '5s',
      registryPullQPS: 0,
      eventRecordQPS: 0,
      kubeAPIQPS: 50,
      kubeAPIBurst: 100,
      serializeImagePulls: false,
      // A full disk of the machine is not what is tested.
      evictionHard: { 'memory.available': '50Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
      imageGCHighThresholdPercent: 100,
      ...facts.more,
    },
    null,
    2,
  );
}

/** Makes the kubelet's command line. */
export function kubeletArgv(executable: string, facts: KubeletFacts): readonly string[] {
  const labels = {
    [NODE_INSTANCE_LABEL]: facts.instanceId,
    'node.kubernetes.io/instance-type': `S5.${facts.cores}CORE`,
    'topology.kubernetes.io/zone': zoneNumber(facts.zone),
    'topology.kubernetes.io/region': 'gz',
  };
  return [
    executable,
    '--config=/etc/kubernetes/kubelet.yaml',
    '--kubeconfig=/etc/kubernetes/kubelet.conf',
    `--hostname-override=${facts.name}`,
    `--node-ip=${facts.ip}`,
    `--node-labels=${Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',')}`,
    '--v=2',
  ];
}
