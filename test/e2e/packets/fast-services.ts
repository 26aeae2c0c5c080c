import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { Flow } from '../../../dataplane/fast-path/flow-layout.ts';
import type { ProxiedService } from '../../support/kube-proxy/service-rules.ts';
import { startTcpStream, type TcpStream } from '../../support/tcp-stream.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { PROXY_NODE } from './hybrid-services.ts';
import { type HybridNodeSpec, type HybridWorld, openHybridWorld, type Party } from './hybrid-world.ts';

/** The kinds of Pods. */
export const KINDS = ['bridge', 'routed', 'eni', 'exclusive'] as const;

/** Ports of the streams' servers begin here. */
const STREAM_PORT = 9_000;
/** The Service port of each stream. */
const SERVICE_PORT = 81;
const FIRST_NODE_PORT = 31_000;
/** Port of the one stream that no Service translates. */
const DIRECT_PORT = 7_400;

/** Runs with two nodes that have the fast path and a Pod of each kind, and a second one of a shared ENI. */
export async function withFastHybrid(
  ruleMode: HybridNodeSpec['ruleMode'],
  run: (world: HybridWorld) => Promise<void>,
): Promise<void> {
  const world = await openHybridWorld(
    {
      n1: { ruleMode, wiring: 'bridge', pods: podsOf(1) },
      n2: { ruleMode, wiring: 'routed', pods: podsOf(2) },
    },
    { fastPath: 'bpf' },
  );
  try {
    await run(world);
  } finally {
    await world.close();
  }
}

/** The flows that the fast path of the node with kube-proxy follows. */
export function learnedBy(world: HybridWorld): readonly Flow[] {
  return world.node(PROXY_NODE).kernel.flows?.flows() ?? [];
}

/** Waits until one of them is as wanted. */
export async function learnedOnce(world: HybridWorld, isWanted: (flow: Flow) => boolean): Promise<void> {
  await waitUntil(() => learnedBy(world).some(isWanted), { what: 'a flow to be learned', everyMs: 50 });
}

/** A TCP Service of each policy before every Pod of a shared ENI, with a port of its own. */
export function streamedServices(world: HybridWorld): readonly ProxiedService[] {
  return world.parties
    .filter(({ kind }) => kind === 'eni')
    .flatMap(({ name, ip, node }, at) =>
      (['Cluster', 'Local'] as const).map((policy, index): ProxiedService => {
        const nth = 2 * at + index;
        return {
          ...{
            name: `default/stream-${name}-${policy.toLowerCase()}`,
            clusterIp: `10.96.1.${nth + 1}`,
            protocol: 'tcp',
            policy,
          },
          ...{ port: SERVICE_PORT, nodePort: FIRST_NODE_PORT + nth },
          endpoints: [{ ip, port: STREAM_PORT + nth, isLocal: node === PROXY_NODE }],
        };
      }),
    );
}

/**
 * Streams by each of these Services, by ClusterIP from a Pod and by NodePort from the outside: no number is lost, and no
 * translated flow is learned, while a flow without a Service is.
 */
export async function expectServiceStreams(
  t: ExecutionContext,
  world: HybridWorld,
  streamed: readonly ProxiedService[],
): Promise<void> {
  const outside = world.party('outside');
  const streams: TcpStream[] = [];
  try {
    for (const { clusterIp, nodePort = 0, policy, endpoints } of streamed) {
      const [{ ip, port, isLocal } = { ip: '', port: 0, isLocal: false }] = endpoints;
      const backend = eniPod(world, (one) => one.ip === ip);
      const client = eniPod(world, (one) => one.node === PROXY_NODE && one !== backend);
      const byClusterIp = await startTcpStream(client, backend, port, { by: { ip: clusterIp, port: SERVICE_PORT } });
      streams.push(byClusterIp);
      if (policy === 'Local' && !isLocal) continue;
      // Both streams have the one port of the server.
      t.deepEqual(await byClusterIp.finish(), []);
      streams.push(
        await startTcpStream(outside, backend, port, { by: { ip: world.party(PROXY_NODE).ip, port: nodePort } }),
      );
    }
    streams.push(
      await startTcpStream(
        outside,
        eniPod(world, (one) => one.node === PROXY_NODE),
        DIRECT_PORT,
      ),
    );
    await sleep(3_000);
    await learnedOnce(world, ({ dport }) => dport === DIRECT_PORT);
    const isStreamPort = (port: number): boolean => port >= STREAM_PORT && port < STREAM_PORT + streamed.length;
    t.deepEqual(
      learnedBy(world).filter(({ sport, dport }) => isStreamPort(sport) || isStreamPort(dport)),
      [],
    );
    for (const stream of streams) t.deepEqual(await stream.finish(), []);
  } finally {
    await Promise.all(streams.map((each) => each.close()));
  }
}

function podsOf(node: number): HybridNodeSpec['pods'] {
  return Object.fromEntries([...KINDS, 'eni' as const].map((kind, at) => [`${kind}-${node}${at}`, kind]));
}

function eniPod(world: HybridWorld, isWanted: (party: Party) => boolean): Party {
  const found = world.parties.find((one) => one.kind === 'eni' && isWanted(one));
  if (found === undefined) throw new Error('no such Pod of a shared ENI');
  return found;
}
