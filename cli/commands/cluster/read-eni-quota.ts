import type { EniQuota } from '../../../cloud/eni-quotas.ts';
import { known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { type CloudLocation, openCloudReader } from '../../command/open-cloud-reader.ts';
import type { ClusterNec } from './cluster-facts.ts';

/**
 * Asks the cloud for the quota of ENIs of the cluster's VPC. Where it does not answer, or the VPC is not known, the
 * result contains the reason instead.
 */
export async function readEniQuota(
  context: Pick<CommandContext, 'env' | 'clock' | 'signal'>,
  location: CloudLocation,
  necs: readonly ClusterNec[],
): Promise<Known<EniQuota>> {
  const vpcs = new Set(necs.flatMap(({ status }) => status.vpcID ?? []));
  const [vpcId, ...others] = vpcs;
  const next = 'look at the quotas of the VPC in the console';
  if (vpcId === undefined || others.length > 0)
    return unknown(`the quota of ENIs: the NodeENIConfigs name ${vpcs.size} VPCs`, next);
  try {
    const reader = await openCloudReader(context, location);
    const quota = await reader.read((cloud, call) => cloud.eniQuotas.ofVpc(vpcId, call));
    return quota === undefined ? unknown(`the cloud does not tell the quota of ENIs of ${vpcId}`, next) : known(quota);
  } catch (error) {
    if (!(error instanceof UserError) || error.code !== 'NO_CLOUD') throw error;
    return unknown(error.message, error.next);
  }
}
