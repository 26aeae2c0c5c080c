import { POD_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { instanceOf, ZONE } from '../ipamd/cloud-process.ts';

/** Images that a kubelet lists on its Node; it has 50 of them at most. */
const IMAGES = 30;

/** Makes a Node of the size that a kubelet gives it: about 8 kB. */
export function hollowNode(index: number): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeNameOf(index),
      labels: {
        'beta.kubernetes.io/arch': 'amd64',
        'cloud.tencent.com/node-instance-id': instanceOf(index),
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': nodeNameOf(index),
        'kubernetes.io/os': 'linux',
        'node.kubernetes.io/instance-type': 'S5.2XLARGE16',
        'topology.kubernetes.io/zone': ZONE,
      },
    },
    spec: { providerID: `tencentcloud:///${ZONE}/${instanceOf(index)}` },
  };
}

/** Makes the status of a Node as its kubelet repeats it every five minutes: only its times change. */
export function hollowNodeStatus(index: number, now: string): Readonly<Record<string, unknown>> {
  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: `Kubelet${type}`,
    message: `kubelet says ${status} of ${type}`,
    lastHeartbeatTime: now,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  });
  const quantities = { cpu: '8', memory: '15731884Ki', pods: '110', 'ephemeral-storage': '103079844Ki' };
  return {
    addresses: [
      { type: 'InternalIP', address: `10.8.${index >> 8}.${index & 255}` },
      { type: 'Hostname', address: nodeNameOf(index) },
    ],
    allocatable: { ...quantities, 'tke.cloud.tencent.com/eni-ip': '95' },
    capacity: { ...quantities, 'tke.cloud.tencent.com/eni-ip': '95' },
    conditions: [
      ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => condition(type, 'False')),
      condition('Ready', 'True'),
    ],
    images: Array.from({ length: IMAGES }, (_, image) => ({
      names: [
        `ccr.ccs.tencentyun.com/team/service-${image}@sha256:${String(image).padStart(64, '0')}`,
        `ccr.ccs.tencentyun.com/team/service-${image}:v1.${image}.0`,
      ],
      sizeBytes: 100_000_000 + image,
    })),
  };
}

/** Makes the ReplicaSet of all Pods: the garbage collector deletes Pods whose owner does not exist. */
export function hollowReplicaSet(): KubeObject {
  const labels = { app: 'service', 'pod-template-hash': '6c54bd5869' };
  const containers = [{ name: 'main', image: 'ccr.ccs.tencentyun.com/team/service-1:v1.1.0' }];
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'service-6c54bd5869', namespace: 'default', labels },
    spec: { replicas: 0, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
}

/** Makes a Pod of the ReplicaSet, bound to its node: about 5 kB once it runs, and the API server's own fields. */
export function hollowPod(name: string, node: number, { metadata }: KubeObject): KubeObject {
  const probe = (path: string) => ({
    httpGet: { path, port: 8080, scheme: 'HTTP' },
    periodSeconds: 10,
    timeoutSeconds: 1,
  });
  const resources = { cpu: '100m', memory: '128Mi', 'tke.cloud.tencent.com/eni-ip': '1' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      labels: { app: 'service', 'app.kubernetes.io/part-of': 'shop', 'pod-template-hash': '6c54bd5869' },
      annotations: {
        [POD_ANNOTATION.networks]: 'tke-route-eni',
        'prometheus.io/scrape': 'true',
        'prometheus.io/port': '8080',
        'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z',
      },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: metadata.name,
          uid: metadata.uid ?? '',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      nodeName: nodeNameOf(node),
      terminationGracePeriodSeconds: 30,
      containers: [
        {
          name: 'main',
          image: 'ccr.ccs.tencentyun.com/team/service-1:v1.1.0',
          env: Array.from({ length: 12 }, (_, one) => ({ name: `SETTING_${one}`, value: `value-of-setting-${one}` })),
          ports: [{ containerPort: 8080, name: 'http' }],
          livenessProbe: probe('/healthz'),
          readinessProbe: probe('/ready'),
          resources: { requests: resources, limits: resources },
          volumeMounts: [{ name: 'config', mountPath: '/etc/service', readOnly: true }],
        },
      ],
      volumes: [{ name: 'config', configMap: { name: 'service' } }],
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
        { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      ],
    },
  };
}

/** Makes the status of a Pod as its kubelet writes it: when it has come to the node, and when it runs. */
export function hollowPodStatus(ip: string | undefined, now: string): Readonly<Record<string, unknown>> {
  const isRunning = ip !== undefined;
  const condition = (type: string, status: boolean) => ({
    type,
    status: status ? 'True' : 'False',
    lastTransitionTime: now,
    ...(status ? {} : { reason: 'ContainersNotReady', message: 'containers with unready status: [main]' }),
  });
  return {
    phase: isRunning ? 'Running' : 'Pending',
    startTime: now,
    hostIP: '10.8.0.1',
    ...(isRunning ? { podIP: ip, podIPs: [{ ip }] } : {}),
    conditions: [
      ...['PodScheduled', 'Initialized'].map((type) => condition(type, true)),
      ...['ContainersReady', 'Ready'].map((type) => condition(type, isRunning)),
    ],
    containerStatuses: [
      {
        name: 'main',
        image: 'ccr.ccs.tencentyun.com/team/service-1:v1.1.0',
        imageID: `ccr.ccs.tencentyun.com/team/service-1@sha256:${'1'.repeat(64)}`,
        ...(isRunning ? { containerID: `containerd://${'2'.repeat(64)}` } : {}),
        ready: isRunning,
        restartCount: 0,
        started: isRunning,
        state: isRunning ? { running: { startedAt: now } } : { waiting: { reason: 'ContainerCreating' } },
      },
    ],
  };
}

/** Returns the name of a node. */
export function nodeNameOf(index: number): string {
  return `node-${index}`;
}
