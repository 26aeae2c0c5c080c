import { DIRECT_LINK_GROUP } from '../../../dataplane/numbers.ts';
import { joinPods, type NodePod } from '../../../inspection/node/join-pods.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import type { CommandContext } from '../../command/command.ts';
import { networkNameOf, type PodRow } from './build-pod-rows.ts';

/**
 * Reads rows of Pods without a journal, from the aliases of host veths and the routes to them.
 * @throws UserError FORBIDDEN, KERNEL
 */
export async function readKernelPods(context: Pick<CommandContext, 'global'>): Promise<readonly PodRow[]> {
  const facts = await readNodeFacts(context, { insides: 'none', nft: false, sysctls: false });
  return joinPods(facts).map(
    (pod): PodRow => ({
      namespace: '',
      pod: '',
      containerId: pod.containerId,
      ifName: pod.ifName,
      ips: pod.ips,
      eniId: '',
      veth: pod.hostLink?.ifname ?? '',
      netns: '',
      plugin: 'route-eni',
      network: networkOf(pod),
      state: 'unknown',
    }),
  );
}

/** Tells by the link alone which network a Pod has. */
function networkOf({ isGr, hostLink }: NodePod): string {
  if (isGr) return networkNameOf('bridge');
  if (hostLink?.group === DIRECT_LINK_GROUP) return networkNameOf('direct-eni');
  return hostLink?.group === 0 ? '' : networkNameOf('route-eni');
}
