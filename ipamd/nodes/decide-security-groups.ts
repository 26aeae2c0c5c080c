/** What the security groups of a node's ENIs depend on. */
export type SecurityGroupFacts = {
  /** --enable-security-groups. */
  readonly isEnabled: boolean;
  /** --security-groups, in order. */
  readonly groups: readonly string[];
  /** `spec.securityGroups` of the NodeENIConfig. */
  readonly ofConfig: readonly string[] | undefined;
  /** Of the instance's primary ENI; undefined while it is not known. */
  readonly ofInstance: readonly string[] | undefined;
  /** The Node annotation disable-node-eni-security-groups. */
  readonly isCleared: boolean;
};

/**
 * Decides the whole list of security groups, in order, that a node's ENIs shall have. Undefined: leave them alone.
 * What a person wrote for the node goes first, then the flags, then what the instance has. Pure.
 */
export function decideSecurityGroups(facts: SecurityGroupFacts): readonly string[] | undefined {
  if (facts.isCleared) return [];
  if (facts.ofConfig !== undefined && facts.ofConfig.length > 0) return facts.ofConfig;
  if (!facts.isEnabled) return undefined;
  if (facts.groups.length > 0) return facts.groups;
  // An instance of which no group is known would leave its ENIs without any: open, or shut, nobody asked for either.
  return facts.ofInstance !== undefined && facts.ofInstance.length > 0 ? facts.ofInstance : undefined;
}
