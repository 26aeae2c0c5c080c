import type { Eni } from '../../../../cloud/cloud.ts';
import type { NodeEniConfigFields, NodeEniInfo } from '../../../../crd/node-eni-config-fields.ts';
import { readNodeEniConfig } from '../../../../crd/read-node-eni-config.ts';
import { isKubeError } from '../../../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS } from '../../../../kube/resource-types.ts';
import { ConfigError } from '../../../../runtime/decode.ts';
import { UserError } from '../../../../runtime/user-error.ts';
import type { CommandContext } from '../../../command/command.ts';
import { type CloudLocation, openCloudReader } from '../../../command/open-cloud-reader.ts';
import { openCluster } from '../../../command/open-cluster.ts';
import type { RemoteEni, RemoteState } from './remote-state.ts';

/** Timeout of a call; short because a user waits. */
const KUBE_CALL_MS = 10_000;

/**
 * Reads the NodeENIConfig of a node. The client library is loaded by this call.
 * @throws UserError NO_CLUSTER, NOT_FOUND, FORBIDDEN
 */
export async function readNec(
  context: Pick<CommandContext, 'global' | 'env' | 'clock' | 'signal'>,
  nodeName: string,
): Promise<RemoteState> {
  try {
    const client = await openCluster(context, { callMs: KUBE_CALL_MS, qps: 5, burst: 10 });
    try {
      return necOf(await client.get(NODE_ENI_CONFIGS, { name: nodeName }, context.signal), nodeName);
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

/** Timeout of the call, retries and waits included; short because a user waits. */
const CLOUD_CALL_MS = 20_000;

/** Reads ENIs from the cloud's API; changes nothing there. @throws UserError NO_CLOUD, USAGE */
export async function readCloud(
  context: Pick<CommandContext, 'env' | 'clock' | 'signal'>,
  location: CloudLocation,
  eniIds: readonly string[],
): Promise<RemoteState> {
  const reader = await openCloudReader(context, location);
  return remoteStateOfCloud(
    await reader.read((cloud, call) => cloud.enis.describe(eniIds, { ...call, timeoutMs: CLOUD_CALL_MS })),
  );
}

/** Builds the remote state from a NodeENIConfig. ENIs that one Pod uses as a whole (mode direct-eni) are left out. */
export function remoteStateOfNec({ metadata, status }: NodeEniConfigFields, isDamaged: boolean): RemoteState {
  return {
    source: 'nec',
    title: `NodeENIConfig ${metadata.name}`,
    enis: (status?.eniInfos ?? []).filter(({ mode }) => mode !== 'direct-eni').map(eniOfNec),
    isComplete: !isDamaged,
    ...(status?.supplyEpoch === undefined ? {} : { epoch: status.supplyEpoch }),
  };
}

function eniOfNec(eni: NodeEniInfo): RemoteEni {
  return {
    eniId: eni.eniID,
    mac: eni.mac.toLowerCase(),
    isAttached: eni.state === 'Attached',
    state: eni.state,
    primaries: [eni.primaryIP, eni.primaryIPv6].filter((ip) => ip !== undefined),
    addresses: (eni.addresses ?? []).map(({ ip, assignmentID, state }) => ({
      ip,
      assignmentId: assignmentID,
      isAssigned: state === 'Assigned',
      state,
    })),
  };
}

/** Builds the remote state from ENIs that the cloud described. A requested ENI that is missing here does not exist. */
export function remoteStateOfCloud(enis: readonly Eni[]): RemoteState {
  return { source: 'cloud', title: 'the cloud', enis: enis.map(eniOfCloud), isComplete: true };
}

function eniOfCloud(eni: Eni): RemoteEni {
  const ips = [...eni.ips, ...(eni.ipv6s ?? [])];
  return {
    eniId: eni.eniId,
    mac: eni.mac,
    isAttached: eni.state === 'AVAILABLE' && eni.attachment !== undefined,
    state: eni.attachment === undefined ? `${eni.state}, attached to nothing` : eni.state,
    primaries: ips.filter(({ isPrimary }) => isPrimary).map(({ ip }) => ip),
    addresses: ips
      .filter(({ isPrimary }) => !isPrimary)
      .map(({ ip, state }) => ({ ip, isAssigned: state === 'AVAILABLE', state })),
  };
}
