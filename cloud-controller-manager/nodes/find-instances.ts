import { isIPv4 } from 'node:net';
import type { CallContext, Instance, InstancePort } from '../../cloud/cloud.ts';
import { PROVIDER_ID_FORMS } from '../../cloud/provider-id.ts';
import type { Logger } from '../../runtime/log.ts';
import type { CloudNode } from './cloud-node.ts';
import { providedIps } from './plan-addresses.ts';

/** The instance of a Node; `unknown`: why there is none; `failed`: the cloud did not answer. */
export type FoundInstance =
  | { readonly kind: 'found'; readonly instance: Instance }
  | { readonly kind: 'unknown'; readonly message: string }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Dependencies of the search. */
type FindDeps = { readonly instances: InstancePort; readonly log: Logger };

const SHOWN_CHARS = 80;

/**
 * Finds the instances of Nodes: by providerID, or by InternalIP within the VPC where a Node has none. Requests are
 * shared by all Nodes. Never rejects.
 */
export async function findInstances(
  deps: FindDeps,
  nodes: readonly CloudNode[],
  vpcId: string | undefined,
  context: CallContext,
): Promise<ReadonlyMap<string, FoundInstance>> {
  // Each on its own, in requests that they share: a Node whose instance the cloud refuses must not hold up others.
  const found = await Promise.all(
    nodes.map(async (node) => {
      try {
        return [node.name, await findOne(deps, node, vpcId, context)] as const;
      } catch (error) {
        return [node.name, { kind: 'failed', error } as const] as const;
      }
    }),
  );
  return new Map<string, FoundInstance>(found);
}

async function findOne(
  deps: FindDeps,
  node: CloudNode,
  vpcId: string | undefined,
  context: CallContext,
): Promise<FoundInstance> {
  const { providerId, providerIdText } = node;
  if (providerId.kind === 'none') return await findByIp(deps, node, vpcId, context);
  if (providerId.kind !== 'instance') {
    const shown = JSON.stringify(providerIdText.slice(0, SHOWN_CHARS));
    const message = `spec.providerID ${shown} names no instance; write one of ${PROVIDER_ID_FORMS}, in a new Node: the field cannot be changed`;
    return { kind: 'unknown', message };
  }
  const { instanceId } = providerId;
  const [instance] = await deps.instances.describe([instanceId], context);
  if (instance !== undefined) return { kind: 'found', instance };
  return { kind: 'unknown', message: `the cloud has no instance ${instanceId} in this account and region` };
}

async function findByIp(
  { instances, log }: FindDeps,
  node: CloudNode,
  vpcId: string | undefined,
  context: CallContext,
): Promise<FoundInstance> {
  const ips = ipsOf(node);
  if (ips.length === 0) {
    const message = 'the Node has neither spec.providerID nor an InternalIP; start the kubelet with --node-ip';
    return { kind: 'unknown', message };
  }
  const shown = ips.join(', ');
  if (vpcId === undefined) {
    const message = `the Node has no spec.providerID, and the VPC in which to look for ${shown} is not known; set --vpc-id`;
    return { kind: 'unknown', message };
  }
  const all = await instances.findByPrivateIps(vpcId, ips, context);
  const ids = [...new Set(all.map(({ instanceId }) => instanceId))];
  const [instance] = all;
  if (ids.length === 1 && instance !== undefined) {
    log.info('the instance of a Node without providerID was found by its address', {
      node: node.name,
      instanceId: instance.instanceId,
      ips,
      vpcId,
    });
    return { kind: 'found', instance };
  }
  const message =
    ids.length === 0
      ? `the Node has no spec.providerID, and no instance of ${vpcId} has the address ${shown}`
      : `the Node has no spec.providerID, and ${shown} are addresses of several instances of ${vpcId}: ${ids.join(', ')}`;
  return { kind: 'unknown', message };
}

/** A Node that waits for its cloud provider may have no address but that of its kubelet's flag, or its name. */
function ipsOf({ name, addresses, annotations }: CloudNode): readonly string[] {
  const internal = addresses.filter(({ type }) => type === 'InternalIP').map(({ address }) => address);
  const all = [...internal, ...providedIps(annotations)].filter((ip) => isIPv4(ip));
  return all.length > 0 || !isIPv4(name) ? [...new Set(all)] : [name];
}
