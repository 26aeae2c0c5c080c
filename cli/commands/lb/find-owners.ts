import { readCloudNode } from '../../../cloud-controller-manager/nodes/cloud-node.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { LbFacts } from './lb-facts.ts';

/** Whose an address is: `Pod NAMESPACE/NAME` or `Node NAME`, and the node; '' : not known. */
export type ServedOwner = { readonly of: string; readonly node: string };

/** Finds whose addresses are which. A Pod in the host's network has that of its Node. */
export function findOwners({ nodes, pods }: Pick<LbFacts, 'nodes' | 'pods'>): ReadonlyMap<string, ServedOwner> {
  const ofPods = (ifKnown(pods) ?? []).flatMap(({ namespace, name, nodeName, ips, network }) =>
    network === 'host' ? [] : ips.map((ip) => [ip, { of: `Pod ${namespace}/${name}`, node: nodeName }] as const),
  );
  const ofNodes = (ifKnown(nodes) ?? []).flatMap((node) => {
    const { name, addresses } = readCloudNode(node);
    return addresses.map(({ address }) => [address, { of: `Node ${name}`, node: name }] as const);
  });
  return new Map<string, ServedOwner>([...ofPods, ...ofNodes]);
}
