import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';

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
