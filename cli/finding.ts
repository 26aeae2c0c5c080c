import type { ElementId } from './node/element-id.ts';

/** One thing that is wrong or worth knowing, the same for doctor, explain, diff, graph and bundle. */
export type Finding = {
  /** Stable, kebab-case, documented: 'rp-filter-strict'. */
  readonly id: string;
  /** error: packets are lost or Pods fail; warning: will bite; info: worth knowing. */
  readonly severity: 'error' | 'warning' | 'info';
  /** What is so, with names and numbers. One line. */
  readonly what: string;
  /** Why it matters: who loses what. One or two sentences. */
  readonly why: string;
  /** Commands or steps that cure it, in order; commands as they can be pasted. Empty for info. */
  readonly fix: readonly string[];
  /** True when it is ours and `tke-eni repair` (or the running agent) mends it. */
  readonly isOurs: boolean;
  /** What it is about, for the graph. */
  readonly subjects: readonly ElementId[];
};

/** Order of severities, the gravest first. */
export const SEVERITY_RANK: Readonly<Record<Finding['severity'], number>> = { error: 0, warning: 1, info: 2 };

/** Compares for sorting: the gravest first. */
export function byGravity(a: Pick<Finding, 'severity'>, b: Pick<Finding, 'severity'>): number {
  return SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity];
}

/** Returns what is equal for findings that say the same of the same. */
export function findingKey({ id, what }: Finding): string {
  return `${id} ${what}`;
}

/** Leaves of findings that say the same the gravest, at the place of the first: what only bites one way may cut off another. */
export function uniqueFindings(findings: readonly Finding[]): readonly Finding[] {
  const gravest = new Map<string, Finding>();
  for (const finding of findings) {
    const known = gravest.get(findingKey(finding));
    if (known === undefined || byGravity(finding, known) < 0) gravest.set(findingKey(finding), finding);
  }
  return [...gravest.values()];
}
