import type { ClusterNec } from './cluster-facts.ts';

/** ENIs of the cluster and what is known of the VPC's quota of ENIs, by what nodes report; the quota itself is not asked for. */
export type EniQuota = {
  /** ENIs in NodeENIConfigs. */
  readonly enis: number;
  /** Nodes of which the cloud has refused an ENI for the quota, until it gives one again. */
  readonly reachedOn: readonly string[];
  /** False when the quota is known to be reached; true proves nothing. */
  readonly isEnough: boolean;
  /** Why it is not enough; '' when that is not known. */
  readonly problem: string;
};

/** Names in one text; more would not be read. */
const SHOWN = 5;

/** Decides whether so many more nodes get an ENI each, by what ipamd reports of the cloud's refusals. */
export function decideEniQuota(necs: readonly ClusterNec[], nodes: number): EniQuota {
  const enis = necs.reduce((sum, { status }) => sum + (status.eniInfos?.length ?? 0), 0);
  const reachedOn = necs.filter(isAtQuota).map(({ key }) => key);
  const more = reachedOn.length > SHOWN ? `, ${reachedOn.length - SHOWN} more` : '';
  const names = `${reachedOn.slice(0, SHOWN).join(', ')}${more}`;
  const problem = `ENIs are not enough to scale out ${nodes} nodes: the quota of the VPC is reached (ENILimit on ${names}); the cluster has ${enis}`;
  const isEnough = reachedOn.length === 0;
  return { enis, reachedOn, isEnough, problem: isEnough ? '' : problem };
}

function isAtQuota({ status }: ClusterNec): boolean {
  return (status.conditions ?? []).some(
    ({ type, status: holds, reason }) => type === 'Ready' && holds === 'False' && reason === 'ENILimit',
  );
}
