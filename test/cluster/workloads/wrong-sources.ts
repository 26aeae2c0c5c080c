import { isInCidr } from '../../../crd/ip-text.ts';
import type { SeenPod } from '../pods.ts';
import { CONTROL_PLANE, type RealCluster } from '../real-cluster.ts';
import { type Asker, ask, ECHO_PORT, netnsAsker, podAsker } from './echo.ts';
import { blocksOf, gatewayOf } from './gr-cluster.ts';

/** The nodes, another host of the VPC and one beyond it, with their addresses. */
export function hostAskers(cluster: RealCluster): readonly (Asker & { readonly ip: string })[] {
  const { vpc } = cluster.cloud;
  const host = vpc.node(CONTROL_PLANE);
  return [
    ...cluster.nodes.map(({ name, ns, ip }) => ({ ...netnsAsker(name, ns), ip })),
    { ...netnsAsker('a host', host.netns), ip: host.primary.primaryIp },
    { ...netnsAsker('outside', vpc.outside.netns), ip: vpc.outside.ip },
  ];
}

/**
 * Has each Pod, which runs the echo server, asked by each other one and by all hosts. Lists who got no answer, or was seen
 * with another address than its own; the node of a Pod on the bridge is seen with the bridge's.
 */
export async function wrongSources(cluster: RealCluster, pods: readonly SeenPod[]): Promise<readonly string[]> {
  const blocks = await blocksOf(cluster);
  const askers = [...pods.map((pod) => ({ ...podAsker(cluster, pod), ip: pod.ip })), ...hostAskers(cluster)];
  const found = await Promise.all(
    pods.map(async (pod) => {
      const block = blocks.get(pod.node) ?? '';
      const wrong: string[] = [];
      for (const asker of askers.filter(({ ip }) => ip !== pod.ip)) {
        const client = asker.name === pod.node && isInCidr(pod.ip, block) ? gatewayOf(block) : asker.ip;
        const seen = await ask(asker, pod.ip, ECHO_PORT);
        const has = JSON.stringify(seen);
        if (seen?.client !== client || seen.pod !== pod.name)
          wrong.push(`${asker.name} ${asker.ip} to ${pod.name} ${pod.ip} on ${pod.node}: ${has}, not ${client}`);
      }
      return wrong;
    }),
  );
  return found.flat();
}
