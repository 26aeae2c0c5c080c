import { run } from '../../sim/support/run.ts';
import { NODE_SYSCTLS } from '../../sim/vpc/node.ts';
import type { TestVpc } from '../../sim/vpc/vpc.ts';

/**
 * Gives a node of the small VPC a new network namespace under the same name, with all its NICs plugged in again: what a
 * reboot makes of addresses, rules, routes, firewalls and sysctls. Nothing may run in the old one any more.
 */
export async function replaceNetwork(vpc: TestVpc, nodeName: string): Promise<void> {
  const { netns, primary } = vpc.node(nodeName);
  // One by one, for a namespace's own end comes when the kernel finds the time, and the ports' names are needed at once.
  for (const link of await netns.ipJson('link', 'show', 'type', 'veth'))
    await netns.tryRun(['ip', 'link', 'delete', String(link['ifname'])]);
  await run(['ip', 'netns', 'del', netns.name]);
  await run(['ip', 'netns', 'add', netns.name]);
  await netns.sysctl(NODE_SYSCTLS);
  await vpc.replug(primary.eniId);
  for (const eniId of vpc.enisOf(nodeName)) await vpc.replug(eniId);
}
