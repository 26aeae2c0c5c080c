import type { FindingId } from '../catalogue/catalogue.ts';
import type { ElementId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { Unjudged } from '../desired/desired-of.ts';
import type { DifferenceOwner } from '../model/build-names.ts';
import type { Change } from './change.ts';

/** One difference between the desired and the observed state. */
export type Difference = Finding & {
  /** Owner as text: 'Pod default/web-0', 'ENI eni-1 (eth1)', 'node', 'foreign'. */
  readonly whose: string;
  /** Owner as a value: a lease's key or an ENI's id; the node where neither applies. */
  readonly owner: DifferenceOwner;
  /** Changes that repair it, in order; empty where the object is not ours to change. */
  readonly changes: readonly Change[];
  /** The one family whose packets are concerned; absent: both. Not printed. */
  readonly family?: 4 | 6;
  /** What two reads that show the same difference share; absent: its id and text. */
  readonly readKey?: string;
};

/** What one operation would repair. */
export type OperationFinding = {
  readonly id: FindingId;
  readonly owner: DifferenceOwner;
  readonly what: string;
  readonly subject: ElementId;
  /** What follows, where that differs from other findings of its kind. */
  readonly why?: string;
  /** How much it matters, where that differs from other findings of its kind. */
  readonly severity?: Finding['severity'];
};

/** Result of a comparison. */
export type NodeDifferences = {
  readonly differences: readonly Difference[];
  /**
   * All changes of `differences`, each once, in the safe order of dataplane/diff.ts: what packets need is added before
   * anything is removed.
   */
  readonly changes: readonly Change[];
  readonly unjudged: readonly Unjudged[];
};

/** Returns whether a difference counts. One of severity info without a change does not make the node differ. */
export function isDifferent({ changes, severity }: Difference): boolean {
  return changes.length > 0 || severity !== 'info';
}

/** Returns the finding without the fields that only `diff` uses. */
export function findingOf({ id, severity, what, why, fix, isOurs, subjects }: Difference): Finding {
  return { id, severity, what, why, fix, isOurs, subjects };
}
