import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';

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

/** Next step of a request to set security groups again. */
export type GroupSyncStep =
  | { readonly kind: 'none' }
  /**
   * Remove the groups that the ENIs were last described with, so that each ENI is set again; record that this was done.
   */
  | { readonly kind: 'begin' }
  /** All ENIs have their groups: the request is removed from the Node, then its mark from the NodeENIConfig. */
  | { readonly kind: 'finish' };

/**
 * Decides the next step of the Node annotation need-sync-security-groups. The request is carried out once. The mark on
 * the NodeENIConfig records that it was started, and survives a change of leader.
 */
export function decideGroupSync(facts: {
  readonly isRequested: boolean;
  readonly isStarted: boolean;
  readonly groups: readonly string[] | undefined;
  readonly status: NodeEniConfigStatus | undefined;
}): GroupSyncStep {
  // A static ENI has the groups of its Pod.
  const enis = (facts.status?.eniInfos ?? []).filter(({ claim }) => claim === undefined);
  if (!facts.isRequested) return facts.isStarted ? { kind: 'finish' } : { kind: 'none' };
  // No group is configured, or another annotation clears all of them: nothing is to be set.
  if (facts.groups === undefined || facts.groups.length === 0 || enis.length === 0) return { kind: 'finish' };
  if (!facts.isStarted) return { kind: 'begin' };
  const required = JSON.stringify(facts.groups);
  const isDone = enis.every(({ securityGroups }) => JSON.stringify(securityGroups) === required);
  return isDone ? { kind: 'finish' } : { kind: 'none' };
}
