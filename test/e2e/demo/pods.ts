import { EXTENDED_RESOURCES, POD_ANNOTATION } from '../../../crd/names.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { isObject } from '../../../sim/support/netns.ts';
import type { PodSpec } from '../../support/containerd-node.ts';
import { POD_NAMESPACE } from '../../system/cluster.ts';

/** Name of the one image: Pod sandboxes sleep in it, containers run a command in it. */
export const IMAGE = 'localhost/tke-demo:1';
/** What the image does when it is told nothing else. */
export const SLEEP = ['/bin/sleep', '2147483647'] as const;

/** Port of web-0 on its node, and in the Pod. */
export const HOST_PORT = 8080;
const CONTAINER_PORT = 80;

/** What `wget` of the host port gets. */
export const GREETING = 'hello from web-0';
/** Where the web server of web-0 writes down who asked. */
export const ACCESS_LOG = '/access.log';

/** Makes the object of a Pod that is bound to a node, as a scheduler leaves it. web-0 also serves on a host port, at a limited rate. */
export function podObject(name: string, nodeName: string): KubeObject {
  const resources = { requests: { [EXTENDED_RESOURCES[0]]: '1' }, limits: { [EXTENDED_RESOURCES[0]]: '1' } };
  const isWeb = name === 'web-0';
  const serve = `echo ${GREETING} >/tmp/index.html; exec httpd -f -vv -p ${CONTAINER_PORT} -h /tmp 2>${ACCESS_LOG}`;
  const container = {
    name: 'main',
    image: IMAGE,
    command: isWeb ? ['/bin/sh', '-c', serve] : [...SLEEP],
    ...(isWeb ? { ports: [{ hostPort: HOST_PORT, containerPort: CONTAINER_PORT }] } : {}),
    resources,
  };
  const annotations = { 'kubernetes.io/ingress-bandwidth': '10M', 'kubernetes.io/egress-bandwidth': '10M' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: POD_NAMESPACE, labels: { app: name }, ...(isWeb ? { annotations } : {}) },
    spec: { nodeName, containers: [container] },
  };
}

/** Makes the object of a Pod whose address is kept for its name. Nobody plays its controller, so it names none. */
export function keptPodObject(name: string, nodeName: string): KubeObject {
  const pod = podObject(name, nodeName);
  return { ...pod, metadata: { ...pod.metadata, annotations: { [POD_ANNOTATION.deletePolicy]: 'Never' } } };
}

/** Makes the object of a Pod on the bridge of its node. It requests no address of an ENI. */
export function bridgePodObject(name: string, nodeName: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: POD_NAMESPACE, annotations: { [POD_ANNOTATION.networks]: 'tke-bridge' } },
    spec: { nodeName, containers: [{ name: 'main', image: IMAGE, command: [...SLEEP] }] },
  };
}

/** Reads from a Pod's object what the runtime is asked to run. */
export function podSpecOf({ metadata, spec }: KubeObject): PodSpec {
  const { name, namespace = POD_NAMESPACE, uid, annotations = {} } = metadata;
  const [container] = isObject(spec) ? listOf(spec['containers']) : [];
  const ports = listOf(container?.['ports']);
  const command: unknown = container?.['command'];
  return {
    name,
    namespace,
    ...(uid === undefined ? {} : { uid }),
    image: String(container?.['image']),
    command: Array.isArray(command) ? command.map(String) : SLEEP,
    annotations,
    portMappings: ports.map((port) => ({
      hostPort: Number(port['hostPort']),
      containerPort: Number(port['containerPort']),
    })),
  };
}

function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
