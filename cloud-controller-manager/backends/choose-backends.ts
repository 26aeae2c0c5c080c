import type { Instance } from '../../cloud/cloud.ts';
import { chooseNode } from '../nodes/choose-node.ts';
import type { CloudNode } from '../nodes/cloud-node.ts';
import { type BackendNode, decideBackendNode } from './decide-backend-node.ts';

/** What the cloud described of the instance of a Node; undefined: nothing, and the Node is believed. */
type InstanceOf = (node: CloudNode) => Pick<Instance, 'vpcId' | 'privateIps'> | undefined;

/**
 * Chooses the Nodes that are backends: of those that name one instance, or have one address, a single one counts.
 * @param vpcId VPC of the load balancers; undefined: that of an instance does not count
 */
export function chooseBackends(
  nodes: readonly CloudNode[],
  instanceOf: InstanceOf,
  vpcId: string | undefined,
): readonly BackendNode[] {
  const counting = nodesThatCount(nodes, instanceOf);
  const claims = counting.flatMap((node) => {
    const instance = instanceOf(node);
    const role = decideBackendNode(node, vpcId, instance);
    return role.kind === 'backend' ? [{ node, instance, backend: role.backend }] : [];
  });
  const byIp = Map.groupBy(claims, ({ backend }) => backend.ip);
  return [...byIp.values()].flatMap((its) => chooseNode(its)?.backend ?? []);
}

/** Returns the Nodes that count, but for those that name no instance: of those with one instance a single one. */
export function nodesThatCount(nodes: readonly CloudNode[], instanceOf: InstanceOf): readonly CloudNode[] {
  const claims = nodes.map((node) => ({ node, instance: instanceOf(node) }));
  const byId = Map.groupBy(claims, ({ node: { providerId, name } }) =>
    providerId.kind === 'instance' ? providerId.instanceId : `node ${name}`,
  );
  return [...byId.values()].flatMap((its) => chooseNode(its)?.node ?? []);
}
