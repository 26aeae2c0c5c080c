import type { CallContext } from './cloud.ts';

/** The quota of ENIs of a VPC. */
export type EniQuota = {
  /** ENIs that the VPC may have. */
  readonly limit: number;
  /** ENIs that it has, those of others included and primary ones of instances not. */
  readonly used: number;
};

/** Quotas of ENIs; read only. */
export type EniQuotaPort = {
  /**
   * Reads the quota of a VPC; undefined where the cloud does not tell it. That primary ENIs do not count is inferred.
   * @see https://cloud.tencent.com/document/product/248/42942 DescribeVpcLimits, vpc-max-enis
   */
  ofVpc(vpcId: string, context: CallContext): Promise<EniQuota | undefined>;
};
