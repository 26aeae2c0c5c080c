import { readCloudNode } from '../../../cloud-controller-manager/nodes/cloud-node.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CloudReader } from '../../command/open-cloud-reader.ts';
import { findOwners } from './find-owners.ts';
import type { GroupFacts, LbCloud, LbFacts } from './lb-facts.ts';

/** More groups than this are not read: each is a call. */
const MAX_GROUPS = 100;

/** Reads the security groups of load balancers and of what is behind their targets, with their rules. */
export async function readGroupFacts(
  { read }: CloudReader,
  { balancers }: LbCloud,
  cluster: Pick<LbFacts, 'nodes' | 'pods'>,
): Promise<Known<GroupFacts>> {
  const targets = balancers.flatMap((one) => one.targets);
  const instanceOf = findInstances(
    targets.filter(({ eniId }) => eniId === undefined),
    cluster,
  );
  const eniIds = [...new Set(targets.flatMap(({ eniId }) => eniId ?? []))];
  const instanceIds = [
    ...new Set([
      ...targets.flatMap(({ eniId, instanceId }) => (eniId === undefined ? (instanceId ?? []) : [])),
      ...instanceOf.values(),
    ]),
  ];
  try {
    const enis = eniIds.length === 0 ? [] : await read((cloud, call) => cloud.enis.describe(eniIds, call));
    const instances =
      instanceIds.length === 0 ? [] : await read((cloud, call) => cloud.instances.describe(instanceIds, call));
    const ofEni = new Map(enis.map(({ eniId, securityGroupIds }) => [eniId, securityGroupIds]));
    const ofInstance = new Map(instances.map(({ instanceId, securityGroupIds }) => [instanceId, securityGroupIds]));
    const ofBalancers = balancers.flatMap(({ balancer }) => balancer.securityGroupIds);
    const ids = [...new Set([...ofBalancers, ...[...ofEni.values(), ...ofInstance.values()].flat()])];
    const rules = await Promise.all(
      ids
        .slice(0, MAX_GROUPS)
        .map(async (id) => [id, await read((cloud, call) => cloud.securityGroups.ingress(id, call))] as const),
    );
    return known({ ofEni, ofInstance, instanceOf, rules: new Map(rules) });
  } catch (error) {
    if (!(error instanceof UserError) || error.code !== 'NO_CLOUD') throw error;
    const next = 'grant vpc:DescribeSecurityGroupPolicies, vpc:DescribeNetworkInterfaces and cvm:DescribeInstances';
    return unknown(`security groups were not read: ${error.message}`, next);
  }
}

/** The instance behind each address: of the Node itself, or of the Node that a Pod's own network leads through. */
function findInstances(targets: readonly { readonly ip: string }[], cluster: Pick<LbFacts, 'nodes' | 'pods'>) {
  const owners = findOwners(cluster);
  const instances = new Map(
    (ifKnown(cluster.nodes) ?? []).map((node) => {
      const { name, providerId } = readCloudNode(node);
      return [name, providerId.kind === 'instance' ? providerId.instanceId : undefined];
    }),
  );
  return new Map(
    targets.flatMap(({ ip }): readonly (readonly [string, string])[] => {
      const instanceId = instances.get(owners.get(ip)?.node ?? '');
      return instanceId === undefined ? [] : [[ip, instanceId]];
    }),
  );
}
