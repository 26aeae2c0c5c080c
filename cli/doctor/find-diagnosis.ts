import { byGravity, type Finding } from '../finding.ts';
import type { ElementId } from '../node/element-id.ts';
import type { Check, Verdict } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** A check with what came of it. */
export type Judged = { readonly check: Check; readonly verdict: Verdict };

/** What the doctor says. */
export type Diagnosis = {
  readonly judged: readonly Judged[];
  /** Of all checks: errors first, then warnings, then what is worth knowing. */
  readonly findings: readonly Finding[];
};

/** What the command line leaves of the checks. */
export type Selection = { readonly checks: readonly Check[]; readonly isWanted: (finding: Finding) => boolean };

/** Makes the selected checks. What two of them found alike is told once, by the first. */
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

/** The same kind about a thing that both name. */
function isTold(told: readonly Finding[], { id, subjects, what }: Finding): boolean {
  const things = new Set(subjects.filter(isOneThing));
  return told.some(
    (other) => other.id === id && (other.what === what || other.subjects.some((thing) => things.has(thing))),
  );
}

/** Many are in one table. */
function isOneThing(subject: ElementId): boolean {
  return !subject.startsWith('table:');
}

/** Counts findings by their weight. */
export function countFindings(findings: readonly Finding[]): Readonly<Record<Finding['severity'], number>> {
  const of = (severity: Finding['severity']) => findings.filter((finding) => finding.severity === severity).length;
  return { error: of('error'), warning: of('warning'), info: of('info') };
}
