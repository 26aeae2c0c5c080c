import type { Unjudged } from '../desired/desired-of.ts';
import type { Finding } from '../finding.ts';
import type { Change } from './change.ts';

/** One thing that is not as it should be. */
export type Difference = Finding & {
  /** For people: 'Pod default/web-0', 'ENI eni-1 (eth1)', 'node', 'foreign'. */
  readonly whose: string;
  /** What it is told apart by: a lease's key, an ENI's id; undefined for the node's own. */
  readonly owner: Owner;
  /** What mends it, in order; empty for what is not ours to change. */
  readonly changes: readonly Change[];
};

/** What part of the node a difference belongs to. */
export type Owner =
  | { readonly kind: 'pod'; readonly key: string }
  | { readonly kind: 'eni'; readonly eniId: string }
  | { readonly kind: 'node' };

/** All that a comparison found. */
export type NodeDifferences = {
  readonly differences: readonly Difference[];
  /** All changes of `differences`, each once, in the order that leaves no hole. */
  readonly changes: readonly Change[];
  readonly unjudged: readonly Unjudged[];
};

/** Tells whether a difference makes a node differ: what is only worth knowing and needs no change does not. */
export function isDifferent({ changes, severity }: Difference): boolean {
  return changes.length > 0 || severity !== 'info';
}

/** Leaves out what only diff needs. */
export function findingOf({ id, severity, what, why, fix, isOurs, subjects }: Difference): Finding {
  return { id, severity, what, why, fix, isOurs, subjects };
}
