import { ENI_IP_TAINT, NODE_INSTANCE_LABEL } from '../../crd/names.ts';

/** What a kubelet with `--cloud-provider=external` tells of its node: its address (`--node-ip`), or its providerID. */
export type ExternalKubelet = 'address' | 'provider-id';

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
  /** Present: it waits for a cloud controller manager, to which it tells only this of its node. */
  readonly external?: ExternalKubelet;
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
      ...providerIdOf(facts),
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

/** As a node of TKE has it from its bootstrap; or the form that a person writes into the kubelet's configuration. */
function providerIdOf({ external, zone, instanceId }: KubeletFacts): { readonly providerID?: string } {
  if (external === undefined) return { providerID: `qcloud:///${zoneNumber(zone)}/${instanceId}` };
  return external === 'provider-id' ? { providerID: `tencentcloud:///${zone}/${instanceId}` } : {};
}

/** Makes the kubelet's command line. */
export function kubeletArgv(executable: string, facts: KubeletFacts): readonly string[] {
  return [
    executable,
    '--config=/etc/kubernetes/kubelet.yaml',
    '--kubeconfig=/etc/kubernetes/kubelet.conf',
    `--hostname-override=${facts.name}`,
    ...(facts.external === 'provider-id' ? [] : [`--node-ip=${facts.ip}`]),
    ...(facts.external === undefined ? [`--node-labels=${bootstrapLabels(facts)}`] : ['--cloud-provider=external']),
    '--v=2',
  ];
}

/** Labels that a node of TKE has from its bootstrap. */
function bootstrapLabels({ instanceId, cores, zone }: KubeletFacts): string {
  const labels = {
    [NODE_INSTANCE_LABEL]: instanceId,
    'node.kubernetes.io/instance-type': `S5.${cores}CORE`,
    'topology.kubernetes.io/zone': zoneNumber(zone),
    'topology.kubernetes.io/region': 'gz',
  };
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}
