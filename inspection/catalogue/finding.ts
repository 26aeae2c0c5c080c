import type { ElementId } from './element-id.ts';

/** One problem or notable fact. doctor, explain, diff, graph and bundle all use this type. */
export type Finding = {
  /** Stable, kebab-case, documented: 'rp-filter-strict'. */
  readonly id: string;
  /** error: packets are lost or Pods fail; warning: it will cause a failure later; info: no failure follows from it. */
  readonly severity: 'error' | 'warning' | 'info';
  /** What was found, with names and numbers. One line. */
  readonly what: string;
  /** Effect on Pods, node or cluster. One or two sentences. */
  readonly why: string;
  /** Commands or steps that fix it, in order; commands can be pasted into a shell. Empty for info. */
  readonly fix: readonly string[];
  /** True when the object belongs to tke-eni, and `tke-eni repair` or the running agent repairs it. */
  readonly isOurs: boolean;
  /** Elements of the graph that the finding is about. */
  readonly subjects: readonly ElementId[];
};

/** Sort order of severities, the most severe first. */
export const SEVERITY_RANK: Readonly<Record<Finding['severity'], number>> = { error: 0, warning: 1, info: 2 };

/** Compares two findings for sorting: the most severe first. */
export function bySeverity(a: Pick<Finding, 'severity'>, b: Pick<Finding, 'severity'>): number {
  return SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity];
}

/** Returns the key that equal findings share: id and text. */
export function findingKey({ id, what }: Finding): string {
  return `${id} ${what}`;
}

/**
 * Returns each finding once. Of equal findings the most severe is kept, at the position of the first: the same fault
 * can be a warning on one path and an error on another.
 */
export function uniqueFindings(findings: readonly Finding[]): readonly Finding[] {
  const mostSevere = new Map<string, Finding>();
  for (const finding of findings) {
    const known = mostSevere.get(findingKey(finding));
    if (known === undefined || bySeverity(finding, known) < 0) mostSevere.set(findingKey(finding), finding);
  }
  return [...mostSevere.values()];
}
