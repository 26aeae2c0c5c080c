import type { Instance } from '../../cloud/cloud.ts';
import { compareTexts } from '../../runtime/compare-texts.ts';
import type { CloudNode } from './cloud-node.ts';
import { trustedIpOf } from './trusted-ip.ts';

/** What is known of a Node that claims to be a machine. */
type Claim = { readonly node: CloudNode; readonly instance: Pick<Instance, 'privateIps'> | undefined };

/**
 * Chooses which of the Nodes that name one machine counts: one whose address its instance has, then one whose kubelet is
 * heard, then the older one. It depends on the Nodes and on what the cloud described alone, so it is the same after a restart.
 */
export function chooseNode<T extends Claim>(claims: readonly T[]): T | undefined {
  return claims.toSorted(compare)[0];
}

function compare(one: Claim, other: Claim): number {
  const [mine, its] = [rankOf(one), rankOf(other)];
  return mine.rank - its.rank || compareTexts(mine.createdAt, its.createdAt) || compareTexts(mine.name, its.name);
}

function rankOf({ node, instance }: Claim) {
  const said = node.addresses.filter(({ type }) => type === 'InternalIP').map(({ address }) => address);
  const ip = trustedIpOf(node, instance);
  const isContradicted = ip !== undefined && !said.includes(ip);
  const rank = (instance === undefined ? 4 : 0) + (isContradicted ? 2 : 0) + (node.isSilent || node.isLeaving ? 1 : 0);
  return { rank, createdAt: node.createdAt, name: node.name };
}
