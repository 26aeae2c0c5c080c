import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';

/** The block of the node, and the address of its Pod. */
export const BLOCK = '172.20.0.0/26';
export const POD_IP = '172.20.0.2';
/** Index of the bridge. */
export const CBR0_IFINDEX = 500;

/** A node with four Pods of two ENIs and a GlobalRoute Pod on a bridge. */
export function grNode(block = BLOCK, links: readonly LinkMessage[] = []): NodeFacts {
  const node = nodeFixture({ enis: 2, podsPerEni: 2, podsOnBridge: 1, block });
  return { ...node, host: { ...node.host, links: [...node.host.links, ...links] } };
}
