import { EIP_CLAIM_KIND } from './eip-claim.ts';
import { NODE_ENI_CONFIG_KIND } from './node-eni-config-fields.ts';
import type { ResourceKind } from './resource-kind.ts';
import { STATIC_IP_CONFIG_KIND } from './static-ip-config.ts';
import { UNDERLAY_IP_KIND } from './underlay-ip.ts';
import { VPC_ENI_KIND } from './vpc-eni.ts';
import { VPC_IP_KIND } from './vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from './vpc-ip-claim.ts';

/** Every kind of the API group. ipamd creates and upgrades their definitions at start. */
export const RESOURCE_KINDS: readonly ResourceKind[] = [
  NODE_ENI_CONFIG_KIND,
  VPC_IP_CLAIM_KIND,
  VPC_IP_KIND,
  VPC_ENI_KIND,
  EIP_CLAIM_KIND,
  STATIC_IP_CONFIG_KIND,
  UNDERLAY_IP_KIND,
];
