import { byGravity, type Finding } from '../finding.ts';
import type { ElementId } from '../node/element-id.ts';
import type { Check, Verdict } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** A check with its outcome. */
export type Judged = { readonly check: Check; readonly verdict: Verdict };

/** Outcome of all selected checks. */
export type Diagnosis = {
  readonly judged: readonly Judged[];
  /** Findings of all checks, the most severe first. */
  readonly findings: readonly Finding[];
};

/** Checks and findings that the command line selects. */
export type Selection = { readonly checks: readonly Check[]; readonly isWanted: (finding: Finding) => boolean };

/** Runs the selected checks. A finding that two of them return is reported once, for the first. */
export function findDiagnosis({ checks, isWanted }: Selection, facts: DoctorFacts): Diagnosis {
  const told: Finding[] = [];
  const judged = checks.map((check): Judged => {
    const verdict = check.judge(facts);
    if (verdict.kind === 'skipped') return { check, verdict };
    const before = [...told];
    const findings = verdict.findings.filter((finding) => isWanted(finding) && !isTold(before, finding));
    told.push(...findings);
    return { check, verdict: { ...verdict, findings } };
  });
  return { judged, findings: told.toSorted(byGravity) };
}

/** Returns whether an equal finding was reported: the same id with the same text or with a common subject. */
function isTold(told: readonly Finding[], { id, subjects, what }: Finding): boolean {
  const things = new Set(subjects.filter(isOneThing));
  return told.some(
    (other) => other.id === id && (other.what === what || other.subjects.some((thing) => things.has(thing))),
  );
}

/** Returns whether a subject identifies a single object. A table contains many objects. */
function isOneThing(subject: ElementId): boolean {
  return !subject.startsWith('table:');
}

/** Counts findings by severity. */
export function countFindings(findings: readonly Finding[]): Readonly<Record<Finding['severity'], number>> {
  const of = (severity: Finding['severity']) => findings.filter((finding) => finding.severity === severity).length;
  return { error: of('error'), warning: of('warning'), info: of('info') };
}
