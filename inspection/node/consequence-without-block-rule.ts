import type { RuleMode } from '../../dataplane/network.ts';

/** Says what follows where rule 1024 of a block is missing. Where a packet arrives all the same it is no error. */
export function consequenceWithoutBlockRule(ruleMode: RuleMode): {
  readonly why: string;
  readonly severity: 'error' | 'warning';
} {
  return ruleMode === 'per-pod'
    ? {
        why: "Loop: a packet of an ENI's Pod to this block leaves by the ENI, the VPC leads it back to this node, and the rule of its source sends it out again, until its TTL ends.",
        severity: 'error',
      }
    : {
        why: "Detour: a packet of an ENI's Pod to this block leaves by the ENI, and comes back by the VPC's route of the block. It arrives as long as the VPC has that route, and passes the security groups of both interfaces.",
        severity: 'warning',
      };
}
