import type { EniNetwork, NodeNetwork } from '../../dataplane/network.ts';

/** Name of the file in the state folder that holds a NodeRecord as JSON. */
export const NODE_RECORD_FILE = 'node.json';

/**
 * The node as the agent last planned it. With the journal's leases it gives the whole desired state again, for tools
 * that inspect a node whose agent does not run. The agent itself reads from it which addresses are exempt from
 * `--egress=node`.
 */
export type NodeRecord = {
  readonly bootId: string;
  readonly agentRelease: string;
  readonly nodeName: string;
  /** Another program wires the Pods of the node. Absent: the agent does. */
  readonly role?: 'uplinks';
  readonly node: NodeNetwork;
  /** ENIs of the plan, also missing ones that Pods still use. */
  readonly enis: readonly EniNetwork[];
};
