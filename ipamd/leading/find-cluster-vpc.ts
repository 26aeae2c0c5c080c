import type { TermComponents } from './leader-deps.ts';

/**
 * Finds the VPC of the cluster: that of the ConfigMap, else the one of all instances, else the one of the subnets.
 * Undefined while it is not known, or with several.
 */
export function findClusterVpc({
  subnets,
  instances,
  instanceIds,
}: Pick<TermComponents, 'subnets' | 'instances' | 'instanceIds'>): string | undefined {
  const configured = subnets.config()?.vpcId;
  if (configured !== undefined) return configured;
  const ofInstances = new Set([...instanceIds()].flatMap((id) => instances.find(id)?.instance?.vpcId ?? []));
  const ids = ofInstances.size > 0 ? ofInstances : new Set(subnets.all().map(({ vpcId }) => vpcId));
  return ids.size === 1 ? [...ids][0] : undefined;
}
