import type { Lease } from '../../../agent/journal/lease.ts';
import type { NodeNetwork } from '../../../dataplane/network.ts';
import { podCidrOf } from '../../../dataplane/pod-cidr.ts';
import { ifKnown, known } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';

/** The block of the node, and the address of its Pod. */
export const BLOCK = '172.20.0.0/26';
export const POD_IP = '172.20.0.2';
/** Index of the bridge. */
export const CBR0_IFINDEX = 500;

/** A node whose first Pod is a GlobalRoute Pod on a bridge. */
export function grNode(block = BLOCK, links: readonly LinkMessage[] = []): NodeFacts {
  const node = nodeFixture({ enis: 2, podsPerEni: 2 });
  const agent = ifKnown(node.agent);
  const [lease, ...others] = agent?.journal.leases ?? [];
  const [model] = node.host.links;
  if (agent === undefined || lease === undefined || model === undefined) throw new Error('the fixture has a Pod');
  const gr: Lease = {
    ...{ ...lease, plugin: 'bridge', eniId: `pod-cidr:${block}`, block: { cidr: block, wiring: 'bridge' } },
    addresses: [{ ip: POD_IP, family: 4, eniId: `pod-cidr:${block}`, assignmentId: '' }],
  };
  const bridge: LinkMessage = { ...model, ifindex: CBR0_IFINDEX, ifname: 'cbr0', kind: 'bridge' };
  const hostIfindex = lease.hostVeth?.ifindex;
  const ports = node.host.links.map((link) =>
    link.ifindex === hostIfindex ? { ...link, master: CBR0_IFINDEX } : link,
  );
  const recorded = ifKnown(agent.node);
  const planned: Partial<NodeNetwork> = {
    bridge: { name: 'cbr0', ifindex: CBR0_IFINDEX, isPresent: true, mtu: bridge.mtu, wiring: 'bridge' },
    podCidrs: [podCidrOf(block)],
  };
  return {
    ...node,
    pods: node.pods.map((pod) =>
      ifKnown(pod.lease)?.containerId === lease.containerId ? { ...pod, lease: known(gr) } : pod,
    ),
    host: { ...node.host, links: [...ports, bridge, ...links] },
    agent: known({
      journal: { ...agent.journal, leases: [gr, ...others] },
      node: recorded === undefined ? agent.node : known({ ...recorded, node: { ...recorded.node, ...planned } }),
    }),
  };
}
