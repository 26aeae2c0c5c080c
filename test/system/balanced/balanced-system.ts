import type { NetnsView } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { System } from '../system.ts';
import type { SystemNode, SystemPod } from '../system-node.ts';
import { type BalancedCluster, type ServiceSpec, startBalancing } from './balanced-cluster.ts';
import { SLICES } from './cluster-controllers.ts';
import { type AtEnd, serveIn, type WebPod } from './web-pod.ts';

/** What is added to a system so that Services have load balancers with packets. */
export type BalancedSystem = Omit<BalancedCluster, 'createService' | 'awaitAddress'> & {
  readonly system: System;
  /** Creates a Service with port 80, and returns the address of its load balancer. */
  balance(service: ServiceSpec): Promise<string>;
  /** Waits until a host answers by HTTP: targets are bound, node ports lead to Pods. */
  awaitAnswer(from: NetnsView, host: string): Promise<void>;
  /** Starts the server of a Pod, says that its containers are ready, and stops it when all is closed. */
  serve(pod: SystemPod, atEnd?: AtEnd): Promise<WebPod>;
  /** Ends all of it, and the system. */
  close(): Promise<void>;
};

/**
 * Adds the rest of a cluster to a system whose nodes have joined: replicas of the cloud controller manager with load
 * balancers, the controllers that Services depend on, and a stand-in of kube-proxy on each of these nodes. The caller closes it.
 */
export async function balanceSystem(
  system: System,
  nodes: readonly SystemNode[],
  options: { readonly replicas?: number; readonly flags?: Readonly<Record<string, string>> } = {},
): Promise<BalancedSystem> {
  const proxied = nodes.map(({ name, scene }) => ({ name, netns: scene.netns }));
  const { createService, awaitAddress, ...cluster } = await startBalancing(system, proxied, options);
  const webs: WebPod[] = [];
  return {
    ...cluster,
    system,
    balance: async (service) => {
      await createService(service);
      return awaitAddress(service.name);
    },
    awaitAnswer: async (from, host) => {
      const argv = ['curl', '--silent', '--output', '/dev/null', '--max-time', '2', `http://${host}/`];
      const slices = () => JSON.stringify(system.cluster.server.objects(SLICES.plural, SLICES.group));
      const explain = () => [cluster.targets().join('\n'), slices(), cluster.logs()].join('\n');
      const isDone = async () => (await from.tryRun(argv)).code === 0;
      await waitUntil(isDone, { what: `an answer of ${host}`, timeoutMs: 20_000, everyMs: 200, explain });
    },
    serve: async (pod, atEnd) => {
      const web = await serveIn(pod, atEnd);
      webs.push(web);
      await cluster.controllers.setContainersReady(pod.name, true);
      return web;
    },
    close: async () => {
      for (const { server } of webs) await server.stop('SIGKILL');
      await cluster.close();
      await system.close();
    },
  };
}
