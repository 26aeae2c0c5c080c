/** What the security groups of a node's ENIs depend on. */
export type SecurityGroupFacts = {
  /** --enable-security-groups. */
  readonly isEnabled: boolean;
  /** --security-groups, in order. */
  readonly groups: readonly string[];
  /** `spec.securityGroups` of the NodeENIConfig. */
  readonly ofConfig: readonly string[] | undefined;
  /** Of the instance's primary ENI; undefined while unknown. */
  readonly ofInstance: readonly string[] | undefined;
  /** The Node annotation disable-node-eni-security-groups. */
  readonly isCleared: boolean;
};

/**
 * Decides the complete list of security groups of a node's ENIs, in order. Undefined: leave them unchanged. The list
 * that a person wrote for the node has precedence, then the flags, then the groups of the instance.
 */
export function decideSecurityGroups(facts: SecurityGroupFacts): readonly string[] | undefined {
  if (facts.isCleared) return [];
  if (facts.ofConfig !== undefined && facts.ofConfig.length > 0) return facts.ofConfig;
  if (!facts.isEnabled) return undefined;
  if (facts.groups.length > 0) return facts.groups;
  // Without a known group of the instance its ENIs would get none, which would open or block them without a request.
  return facts.ofInstance !== undefined && facts.ofInstance.length > 0 ? facts.ofInstance : undefined;
}
