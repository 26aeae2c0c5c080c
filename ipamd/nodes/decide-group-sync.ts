import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';

/** What a wish to bind security groups anew has come to. */
export type GroupSyncStep =
  | { readonly kind: 'none' }
  /** Forget what the ENIs were last seen with, so that each is set anew; remember that it was forgotten. */
  | { readonly kind: 'begin' }
  /** All have what they shall have: the wish goes off the Node, and then its mark off the NodeENIConfig. */
  | { readonly kind: 'finish' };

/**
 * Decides the next step of the Node annotation need-sync-security-groups. It is a wish that is done once: the mark on the
 * NodeENIConfig says that it was begun, and survives a change of leader. Pure.
 */
export function decideGroupSync(facts: {
  readonly isWanted: boolean;
  readonly isBegun: boolean;
  readonly groups: readonly string[] | undefined;
  readonly status: NodeEniConfigStatus | undefined;
}): GroupSyncStep {
  // One that is kept has its Pod's.
  const enis = (facts.status?.eniInfos ?? []).filter(({ claim }) => claim === undefined);
  if (!facts.isWanted) return facts.isBegun ? { kind: 'finish' } : { kind: 'none' };
  // Nothing is configured, or all are cleared by another annotation: there is nothing to bring in line.
  if (facts.groups === undefined || facts.groups.length === 0 || enis.length === 0) return { kind: 'finish' };
  if (!facts.isBegun) return { kind: 'begin' };
  const wanted = JSON.stringify(facts.groups);
  const isDone = enis.every(({ securityGroups }) => JSON.stringify(securityGroups) === wanted);
  return isDone ? { kind: 'finish' } : { kind: 'none' };
}
