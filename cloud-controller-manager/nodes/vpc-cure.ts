import type { NodeInstances } from '../controller/node-instances.ts';

/** Says what to do while the VPC of the cluster is not known, for people; the end of a sentence. */
export function vpcCureOf({ vpcFault }: Pick<NodeInstances, 'vpcFault'>): string {
  return vpcFault ?? 'set --vpc-id, or let cloud-node-controller find the instances of Nodes';
}
