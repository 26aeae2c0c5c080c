import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import type { KubeObject, ResourceType } from '../../../kube/kube-client.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { connectInProcess } from '../../../sim/kube-api/in-process.ts';
import { renderKubeconfig } from '../../../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../../../sim/kube-api/start-kube-api.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { openDoor } from '../../system/door.ts';
import { createTempDir } from '../temp-dir.ts';
import { waitUntil } from '../wait-until.ts';
import { readProxyFacts } from './read-proxy-facts.ts';
import type { LocalDetector, ProxiedService } from './service-rules.ts';

/** A node and what its kube-proxy is to serve. */
type KubeProxySpec = {
  /** Path of the executable. */
  readonly executable: string;
  readonly netns: NetnsView;
  readonly nodeName: string;
  readonly nodeIp: string;
  readonly mode: 'iptables' | 'nftables';
  readonly services: readonly ProxiedService[];
  readonly detector?: LocalDetector;
};

/** A real kube-proxy whose rules are in force. */
type KubeProxy = {
  /** What its rules do. @see readProxyFacts */
  facts(): Promise<readonly string[]>;
  /** Ends it; its rules stay in the namespace. */
  close(): Promise<void>;
};

const PORT = 6_444;
const SERVICES: ResourceType = { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true };
const SLICES: ResourceType = {
  ...{ group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' },
  ...{ kind: 'EndpointSlice', isNamespaced: true },
};

/** Starts the real kube-proxy in a namespace, with the API server of the tests, and waits for its rules. */
export async function startKubeProxy(spec: KubeProxySpec): Promise<KubeProxy> {
  const { executable, netns, mode, services } = spec;
  await using undo = new AsyncDisposableStack();
  const server = undo.adopt(await startKubeApi(), (one) => one.close());
  const door = undo.adopt(openDoor(netns, PORT, server.accept), (one) => one.close());
  const dir = undo.adopt(createTempDir('kube-proxy'), (one) => one.close());
  const kube = connectInProcess(server.api, { clock: systemClock }).client();
  for (const [type, object] of objectsOf(spec)) await kube.create(type, object);
  const [kubeconfig, config] = [dir.join('kubeconfig'), dir.join('config.yaml')];
  writeFileSync(kubeconfig, renderKubeconfig({ url: `http://${door.address}` }));
  writeFileSync(config, stringify(configOf(spec, kubeconfig)));
  const child = undo.adopt(
    netns.start([executable, `--config=${config}`, `--hostname-override=${spec.nodeName}`]),
    async (one) => {
      await one.stop('SIGTERM', 2_000);
    },
  );
  const read = async (): Promise<readonly string[]> => {
    const argv = mode === 'iptables' ? ['iptables-save', '-t', 'nat'] : ['nft', 'list', 'table', 'ip', 'kube-proxy'];
    return readProxyFacts((await netns.tryRun(argv)).stdout, services);
  };
  const wanted = services.reduce((sum, { nodePort }) => sum + (nodePort === undefined ? 1 : 2), 0);
  const isDone = async (): Promise<boolean> => {
    if (!child.isRunning) throw new Error(`kube-proxy ended: ${child.stderr.slice(-4_000)}`);
    return (await read()).filter((line) => !line.endsWith(': ')).length >= wanted;
  };
  await waitUntil(isDone, {
    what: `rules of kube-proxy, ${mode}`,
    timeoutMs: 30_000,
    explain: () => child.stderr.slice(-4_000),
  });
  const kept = undo.move();
  return {
    facts: read,
    close: () => kept.disposeAsync(),
  };
}

function configOf({ mode, detector }: KubeProxySpec, kubeconfig: string): object {
  const detect =
    detector === undefined
      ? {}
      : 'cluster' in detector
        ? { detectLocalMode: 'ClusterCIDR', clusterCIDR: detector.cluster }
        : { detectLocalMode: 'InterfaceNamePrefix', detectLocal: { interfaceNamePrefix: detector.interfacePrefix } };
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode,
    ...detect,
    // The API server of the tests does not speak protobuf.
    clientConnection: { kubeconfig, contentType: 'application/json', acceptContentTypes: 'application/json' },
    // These belong to the whole machine; a network namespace may not set them.
    conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
  };
}

function objectsOf({ nodeName, nodeIp, services }: KubeProxySpec): readonly (readonly [ResourceType, KubeObject])[] {
  const node = {
    ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } },
    status: { addresses: [{ type: 'InternalIP', address: nodeIp }] },
  };
  return [
    [NODES, node],
    ...services.flatMap((service) => [
      [SERVICES, serviceOf(service)] as const,
      [SLICES, sliceOf(service, nodeName)] as const,
    ]),
  ];
}

function serviceOf({ name: path, clusterIp, port, protocol, nodePort, policy }: ProxiedService): KubeObject {
  const [namespace = '', name = ''] = path.split('/');
  const isNodePort = nodePort !== undefined;
  return {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name } },
    spec: {
      ...{ clusterIP: clusterIp, clusterIPs: [clusterIp], ipFamilies: ['IPv4'], internalTrafficPolicy: 'Cluster' },
      ...{ sessionAffinity: 'None', type: isNodePort ? 'NodePort' : 'ClusterIP' },
      ...(isNodePort ? { externalTrafficPolicy: policy } : {}),
      ports: [{ protocol: protocol.toUpperCase(), port, targetPort: port, ...(isNodePort ? { nodePort } : {}) }],
    },
  };
}

function sliceOf({ name: path, protocol, endpoints }: ProxiedService, nodeName: string): KubeObject {
  const [namespace = '', name = ''] = path.split('/');
  return {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { namespace, name, labels: { 'kubernetes.io/service-name': name } },
    ports: [{ name: '', protocol: protocol.toUpperCase(), port: endpoints[0]?.port ?? 0 }],
    endpoints: endpoints.map(({ ip, isLocal }) => ({
      ...{ addresses: [ip], conditions: { ready: true, serving: true, terminating: false } },
      nodeName: isLocal ? nodeName : 'another-node',
    })),
  };
}
