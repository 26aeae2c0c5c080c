import type { LbRow } from './build-lb-rows.ts';

/** Says which security groups have to admit a client of a load balancer. */
export function admissionText({ securityGroupIds = [], passesToTarget = false }: LbRow): string {
  const groups = securityGroupIds.length === 0 ? 'has no security group' : `admits by ${securityGroupIds.join(', ')}`;
  const others = passesToTarget
    ? 'and nothing else filters the client'
    : 'and the security groups of node or ENI have to admit the client too';
  return `${groups}, ${others}`;
}
