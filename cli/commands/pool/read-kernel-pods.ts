import { DIRECT_LINK_GROUP } from '../../../dataplane/numbers.ts';
import type { CommandContext } from '../../command/command.ts';
import { podAddresses } from '../../node/find-pod.ts';
import type { NodeFacts } from '../../node/node-facts.ts';
import { readNodeFacts } from '../../node/read-node-facts.ts';
import { networkNameOf, type PodRow } from './build-pod-rows.ts';

/**
 * Reads rows of Pods without a journal, from the aliases of host veths and the routes to them.
 * @throws CliError FORBIDDEN, KERNEL
 */
export async function readKernelPods(context: Pick<CommandContext, 'global'>): Promise<readonly PodRow[]> {
  const facts = await readNodeFacts(context, { insides: 'none', nft: false, sysctls: false });
  return facts.pods.map((pod): PodRow => {
    const slash = pod.key.indexOf('/');
    return {
      namespace: '',
      pod: '',
      containerId: pod.key.slice(0, slash),
      ifName: pod.key.slice(slash + 1),
      ips: podAddresses(facts, pod),
      eniId: '',
      veth: facts.host.links.find(({ ifindex }) => ifindex === pod.hostIfindex)?.ifname ?? '',
      netns: '',
      plugin: 'route-eni',
      network: networkOf(facts, pod.hostIfindex),
      state: 'unknown',
    };
  });
}

/** Tells by the link alone which network a Pod has. */
function networkOf({ host }: NodeFacts, ifindex: number | undefined): string {
  const veth = host.links.find((link) => link.ifindex === ifindex);
  const isOnBridge = host.links.some((link) => link.kind === 'bridge' && link.ifindex === veth?.master);
  if (isOnBridge) return networkNameOf('bridge');
  if (veth?.group === DIRECT_LINK_GROUP) return networkNameOf('direct-eni');
  return veth?.group === 0 ? '' : networkNameOf('route-eni');
}
