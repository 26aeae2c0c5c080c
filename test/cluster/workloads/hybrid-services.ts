import { at } from '../../kube-api/contract/contract-case.ts';
import type { ProxiedService } from '../../support/kube-proxy/service-rules.ts';
import { awaitPods, podManifest, type SeenPod } from '../pods.ts';
import type { RealCluster } from '../real-cluster.ts';
import { type Asker, ask, ECHO_PORT, ECHO_SERVER, podAsker } from './echo.ts';
import { blocksOf, gatewayOf } from './gr-cluster.ts';
import { hostAskers } from './wrong-sources.ts';

/** Who asks: a Pod of one of the two networks, a node, or a host without kube-proxy. */
type HybridAsker = Asker & {
  readonly ip: string;
  readonly kind: 'gr' | 'eni' | 'node' | 'host';
  /** '' for a host. */
  readonly node: string;
};

/** A Service of type NodePort before one Pod on node1. */
type HybridService = {
  readonly name: string;
  readonly policy: 'Cluster' | 'Local';
  readonly backend: SeenPod;
  readonly kind: 'gr' | 'eni';
  readonly clusterIp: string;
  readonly nodePort: number;
};

/** Pods of both networks on both nodes, and a Service of each policy before one of each network on node1. */
export type HybridServiceScene = {
  readonly askers: readonly HybridAsker[];
  readonly services: readonly HybridService[];
  /** Port of the Service of policy Local with a GlobalRoute backend on each node. */
  readonly everywherePort: number;
};

const KINDS = ['gr', 'eni'] as const;
const NODES = ['node1', 'node2'] as const;
const POLICIES = ['Cluster', 'Local'] as const;

/** Makes the scene in a hybrid cluster. */
export async function makeHybridServices(cluster: RealCluster): Promise<HybridServiceScene> {
  const networks = { gr: 'tke-bridge', eni: 'tke-route-eni' } as const;
  const clients = KINDS.flatMap((kind) => NODES.map((node) => ({ kind, node, name: `${kind}-${node}` })));
  const backends = KINDS.map((kind) => ({ kind, node: 'node1', name: `${kind}-backend` }));
  await cluster.apply(
    [
      ...[...clients, ...backends].map(({ name, kind, node }) =>
        podManifest(name, {
          ...ECHO_SERVER,
          network: networks[kind],
          ...(kind === 'gr' && name !== 'gr-backend' ? { labels: EVERYWHERE } : {}),
          spec: { ...ECHO_SERVER.spec, nodeName: node },
        }),
      ),
      ...KINDS.flatMap((kind) =>
        POLICIES.map((policy) => serviceManifest(serviceName(kind, policy), policy, { app: `${kind}-backend` })),
      ),
      serviceManifest('everywhere', 'Local', EVERYWHERE),
    ].join('\n---\n'),
  );
  const podOf = async (name: string): Promise<SeenPod> => {
    const [pod] = await awaitPods(cluster, `app=${name}`, 1, { timeoutMs: 120_000 });
    if (pod === undefined) throw new Error(`${name}: no Pod`);
    return pod;
  };
  const pods = await Promise.all(clients.map(async (client) => ({ ...client, pod: await podOf(client.name) })));
  const services = await Promise.all(
    KINDS.flatMap((kind) =>
      POLICIES.map(async (policy): Promise<HybridService> => {
        const name = serviceName(kind, policy);
        return { name, policy, kind, ...(await placeOf(cluster, name)), backend: await podOf(`${kind}-backend`) };
      }),
    ),
  );
  const nodeNames: readonly string[] = NODES;
  const hosts = hostAskers(cluster).map((asker) => {
    const isNode = nodeNames.includes(asker.name);
    return { ...asker, kind: isNode ? ('node' as const) : ('host' as const), node: isNode ? asker.name : '' };
  });
  return {
    askers: [...pods.map(({ pod, kind, node }) => ({ ...podAsker(cluster, pod), ip: pod.ip, kind, node })), ...hosts],
    services,
    everywherePort: (await placeOf(cluster, 'everywhere')).nodePort,
  };
}

async function placeOf(cluster: RealCluster, service: string) {
  const spec = at(await cluster.kubectlJson('get', 'service', service), 'spec');
  return { clusterIp: String(at(spec, 'clusterIP')), nodePort: Number(at(spec, 'ports', 0, 'nodePort')) };
}

/**
 * Asks every Service by its own address and by the port of both nodes, and lists what was not answered, or answered by
 * another Pod, or with another source than docs/hybrid.md says. kube-proxy takes GlobalRoute Pods for those of its node.
 */
export async function wrongServiceAnswers(
  cluster: RealCluster,
  { askers, services }: HybridServiceScene,
): Promise<readonly string[]> {
  const blocks = await blocksOf(cluster);
  const { vpc } = cluster.cloud;
  const gateway = gatewayOf(blocks.get('node1') ?? '');
  const ipOf = (node: string): string => cluster.node(node).ip;
  const ofEni = new Map(
    await Promise.all(
      askers
        .filter(({ kind }) => kind === 'eni')
        .map(async ({ ip }) => [ip, (await vpc.eni(vpc.eniOf(ip) ?? '')).primaryIp] as const),
    ),
  );
  /** What a node that masquerades puts in: an address of the interface by which the packet leaves it. */
  const masqueraded = (node: string, asker: HybridAsker, { kind }: HybridService): string => {
    if (node === 'node1') return kind === 'gr' ? gateway : ipOf(node);
    return (asker.node === node ? ofEni.get(asker.ip) : undefined) ?? ipOf(node);
  };
  const isOfNode = (asker: HybridAsker, node: string): boolean => asker.kind === 'node' && asker.node === node;
  const byClusterIp = (asker: HybridAsker, service: HybridService) =>
    asker.node === ''
      ? []
      : [
          {
            ...{ asker, service, host: service.clusterIp, port: 80 },
            client: asker.kind === 'gr' ? asker.ip : masqueraded(asker.node, asker, service),
          },
        ];
  const byNodePort = (asker: HybridAsker, service: HybridService, node: string) => {
    const isLocal = service.policy === 'Local';
    const common = { asker, service, host: ipOf(node), port: service.nodePort };
    if (!isLocal || isOfNode(asker, node)) return { ...common, client: masqueraded(node, asker, service) };
    // A node leads what its own GlobalRoute Pods ask to every endpoint.
    const isAnswered = node === 'node1' || (asker.kind === 'gr' && asker.node === node);
    return { ...common, client: isAnswered ? asker.ip : undefined };
  };
  const questions = services.flatMap((service) =>
    askers.flatMap((asker) => [
      ...byClusterIp(asker, service),
      ...NODES.map((node) => byNodePort(asker, service, node)),
    ]),
  );
  const wrong: string[] = [];
  const queue = questions.values();
  const worker = async (): Promise<void> => {
    for (const { asker, service, host, port, client } of queue) {
      const seen = await ask(asker, host, port, client === undefined ? 1 : 3);
      const has = seen === undefined ? 'nobody' : `${seen.pod} ${seen.client}`;
      const wants = client === undefined ? 'nobody' : `${service.backend.name} ${client}`;
      if (has !== wants)
        wrong.push(`${asker.name} ${asker.ip} to ${service.name} by ${host}:${port}: ${has}, not ${wants}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return wrong.toSorted();
}

/** Selects the Pods of one Service of policy Local on both nodes: the GlobalRoute clients. */
const EVERYWHERE = { serves: 'everywhere' } as const;
/** With a backend on each of two nodes, a wrong choice shows in half of them. */
const CONNECTIONS = 10;

/** Lists which connections to the port of a node did not end at its own backend, which sees the asker; there is one on each node. */
export async function wrongLocalAnswers(
  cluster: RealCluster,
  { askers, everywherePort }: HybridServiceScene,
): Promise<readonly string[]> {
  const ways = askers.flatMap((asker) =>
    NODES.filter((node) => node !== asker.node).map((node) => ({ asker, node, ip: cluster.node(node).ip })),
  );
  const found = await Promise.all(
    ways.map(async ({ asker, node, ip }) => {
      const wrong: string[] = [];
      for (let asked = 0; asked < CONNECTIONS; asked++) {
        const seen = await ask(asker, ip, everywherePort, 1);
        if (seen?.pod !== `gr-${node}` || seen.client !== asker.ip)
          wrong.push(`${asker.name} ${asker.ip} to ${node}: ${JSON.stringify(seen)}`);
      }
      return wrong;
    }),
  );
  return found.flat();
}

/** The Services as a node's kube-proxy has them. */
export function proxiedServices({ services }: HybridServiceScene, node: string): readonly ProxiedService[] {
  return services.map(({ name, clusterIp, nodePort, policy, backend }) => ({
    ...{ name: `default/${name}`, clusterIp, port: 80, protocol: 'tcp', nodePort, policy },
    endpoints: [{ ip: backend.ip, port: ECHO_PORT, isLocal: backend.node === node }],
  }));
}

/** Questions at a time. */
const AT_ONCE = 6;

function serviceName(kind: string, policy: string): string {
  return `${kind}-${policy.toLowerCase()}`;
}

function serviceManifest(name: string, externalTrafficPolicy: string, selector: object): string {
  const ports = [{ port: 80, targetPort: ECHO_PORT }];
  const spec = { type: 'NodePort', externalTrafficPolicy, selector, ports };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec });
}
