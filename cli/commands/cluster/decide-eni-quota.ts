import type { EniQuota } from '../../../cloud/eni-quotas.ts';
import type { ClusterNec } from './cluster-facts.ts';

/** ENIs of the cluster, and what is known of the VPC's quota of ENIs. */
export type EniCapacity = {
  /** ENIs in NodeENIConfigs. */
  readonly enis: number;
  /** Nodes of which the cloud has refused an ENI for the quota, until it gives one again. */
  readonly reachedOn: readonly string[];
  /** ENIs that the VPC may have, and has; absent unless the cloud was asked. */
  readonly ofVpc?: EniQuota;
  /** False when the quota is known to be reached; without `ofVpc` true proves nothing. */
  readonly isEnough: boolean;
  /** Why it is not enough; '' when that is not known. */
  readonly problem: string;
};

/** Names in one text; more would not be read. */
const SHOWN = 5;

/** Decides whether so many more nodes get an ENI each: by the quota, and by what ipamd reports of the cloud's refusals. */
export function decideEniQuota(necs: readonly ClusterNec[], nodes: number, ofVpc?: EniQuota): EniCapacity {
  const enis = necs.reduce((sum, { status }) => sum + (status.eniInfos?.length ?? 0), 0);
  const reachedOn = necs.filter(isAtQuota).map(({ key }) => key);
  const cause = causeOf(reachedOn, nodes, ofVpc);
  const problem = `ENIs are not enough to scale out ${nodes} nodes: ${cause}; the cluster has ${enis}`;
  const isEnough = cause === undefined;
  return { enis, reachedOn, ...(ofVpc === undefined ? {} : { ofVpc }), isEnough, problem: isEnough ? '' : problem };
}

function causeOf(reachedOn: readonly string[], nodes: number, ofVpc: EniQuota | undefined): string | undefined {
  if (ofVpc !== undefined && ofVpc.used + nodes > ofVpc.limit)
    return `the VPC has ${ofVpc.used} ENIs and may have ${ofVpc.limit}, and each node takes one at least`;
  if (reachedOn.length === 0) return undefined;
  const more = reachedOn.length > SHOWN ? `, ${reachedOn.length - SHOWN} more` : '';
  return `the quota of the VPC is reached (ENILimit on ${reachedOn.slice(0, SHOWN).join(', ')}${more})`;
}

function isAtQuota({ status }: ClusterNec): boolean {
  return (status.conditions ?? []).some(
    ({ type, status: holds, reason }) => type === 'Ready' && holds === 'False' && reason === 'ENILimit',
  );
}
