/** What to do while the VPC of the cluster is not known, for people; the end of a sentence. */
export const VPC_CURE = 'set --vpc-id, or let cloud-node-controller find the instances of Nodes';
