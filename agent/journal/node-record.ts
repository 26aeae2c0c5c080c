import type { EniNetwork, NodeNetwork } from '../../dataplane/network.ts';

/** File of the state folder that holds a NodeRecord as JSON. */
export const NODE_RECORD_FILE = 'node.json';

/**
 * The node as the agent last planned it: with the journal's leases it makes the whole desired state again, for those who
 * look at a node whose agent is dead. The agent itself takes from it which addresses are exempt from `--egress=node`.
 */
export type NodeRecord = {
  readonly bootId: string;
  readonly agentRelease: string;
  readonly nodeName: string;
  readonly node: NodeNetwork;
  /** ENIs that were placed, gone ones that Pods still use included. */
  readonly enis: readonly EniNetwork[];
};
