import { NODE_ENI_CONFIG_KIND } from '../../../../crd/node-eni-config-fields.ts';
import { readNodeEniConfig } from '../../../../crd/read-node-eni-config.ts';
import { isKubeError } from '../../../../kube/kube-error.ts';
import { resourceTypeOf } from '../../../../kube/resource-types.ts';
import { ConfigError } from '../../../../runtime/decode.ts';
import { UserError } from '../../../../runtime/user-error.ts';
import type { CommandContext } from '../../../command/command.ts';
import { openCluster } from '../../../command/open-cluster.ts';
import { remoteStateOfNec } from './build-remote-state.ts';
import type { RemoteState } from './remote-state.ts';

/** Timeout of a call; short because a user waits. */
const CALL_MS = 10_000;

/**
 * Reads the NodeENIConfig of a node. The client library is loaded by this call.
 * @throws UserError NO_CLUSTER, NOT_FOUND, FORBIDDEN
 */
export async function readNec(
  context: Pick<CommandContext, 'global' | 'env' | 'clock' | 'signal'>,
  nodeName: string,
): Promise<RemoteState> {
  try {
    const client = await openCluster(context, { callMs: CALL_MS, qps: 5, burst: 10 });
    try {
      return necOf(
        await client.get(resourceTypeOf(NODE_ENI_CONFIG_KIND), { name: nodeName }, context.signal),
        nodeName,
      );
    } finally {
      client.close();
    }
  } catch (error) {
    throw asUserError(error, nodeName);
  }
}

function necOf(object: Readonly<Record<string, unknown>> | undefined, nodeName: string): RemoteState {
  const read = object === undefined ? undefined : readNodeEniConfig(object);
  if (read === undefined) {
    const next = 'kubectl get nodeeniconfigs lists them; ipamd makes one for each node with the network label';
    throw new UserError('NOT_FOUND', `the cluster has no NodeENIConfig ${nodeName}`, next);
  }
  return remoteStateOfNec(read.config, read.damaged.has('status.eniInfos'));
}

function asUserError(error: unknown, nodeName: string): unknown {
  if (error instanceof ConfigError) {
    return new UserError('NO_CLUSTER', error.message, 'give --kubeconfig, or leave --nec out', { cause: error });
  }
  if (isKubeError(error, 'FORBIDDEN', 'UNAUTHORIZED')) {
    const next = `use a kubeconfig that may get nodeeniconfigs: kubectl auth can-i get nodeeniconfigs/${nodeName}`;
    return new UserError('FORBIDDEN', error.message, next, { cause: error });
  }
  if (isKubeError(error)) {
    return new UserError('NO_CLUSTER', error.message, 'look at --kubeconfig, or leave --nec out', { cause: error });
  }
  return error;
}
