import { bySeverity, type Finding } from '../../../inspection/catalogue/finding.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { plural } from '../../output/plural.ts';
import { type Check, done, type Verdict } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** A check with its outcome. */
export type CheckResult = { readonly check: Check; readonly verdict: Verdict };

/** Outcome of all selected checks. */
export type Diagnosis = {
  readonly results: readonly CheckResult[];
  /** Findings of all checks, the most severe first. */
  readonly findings: readonly Finding[];
};

/** Checks and findings that the command line selects. */
type Selection = { readonly checks: readonly Check[]; readonly isSelected: (finding: Finding) => boolean };

/**
 * Runs the selected checks. What the assessment found belongs to the first of them that can find it; a check that was skipped
 * for its own facts has been made all the same where the assessment found something for it.
 */
export function evaluateChecks({ checks, isSelected }: Selection, facts: DoctorFacts): Diagnosis {
  const assessed = Map.groupBy(gathered(facts.assessed).filter(isSelected), ({ id }) =>
    checks.find(({ finds }) => finds.some((each) => each === id)),
  );
  const results = checks.map((check): CheckResult => {
    const verdict = check.evaluate(facts);
    const others = assessed.get(check) ?? [];
    if (verdict.kind === 'skipped') return { check, verdict: others.length === 0 ? verdict : done(others) };
    return { check, verdict: { ...verdict, findings: [...others, ...verdict.findings.filter(isSelected)] } };
  });
  const found = results.flatMap(({ verdict }) => (verdict.kind === 'done' ? verdict.findings : []));
  return { results, findings: found.toSorted(bySeverity) };
}

/** Returns one finding where a program has set all Pods' interfaces alike: a full node has hundreds of them. */
function gathered(findings: readonly Finding[]): readonly Finding[] {
  const alike = findings.filter(({ id }) => id === 'rp-filter-off');
  const [first] = alike;
  if (first === undefined || alike.length === 1) return findings;
  const what = `${first.what}; and so for ${plural(alike.length - 1, 'more Pod')}`;
  const one = { ...first, what, subjects: alike.flatMap(({ subjects }) => subjects) };
  return findings.flatMap((each) => (each === first ? [one] : alike.includes(each) ? [] : [each]));
}

/** Counts findings by severity. */
export function countFindings(findings: readonly Finding[]): Readonly<Record<Finding['severity'], number>> {
  const of = (severity: Finding['severity']) => findings.filter((finding) => finding.severity === severity).length;
  return { error: of('error'), warning: of('warning'), info: of('info') };
}

/**
 * Selects checks by the ids of checks and findings. A finding's id selects the checks that can return it, and limits
 * them to that finding.
 * @throws UserError USAGE with every unknown id
 */
export function decideSelection(checks: readonly Check[], only: readonly string[], skip: readonly string[]): Selection {
  const onlyIds = only.flatMap(split);
  const skipIds = skip.flatMap(split);
  const known = new Set(checks.flatMap(({ id, finds }) => [id, ...finds]));
  const unknownIds = [...onlyIds, ...skipIds].filter((id) => !known.has(id));
  if (unknownIds.length > 0) {
    const message = `there is no check or finding called ${unknownIds.map((id) => JSON.stringify(id)).join(', ')}`;
    throw new UserError('USAGE', message, `checks: ${checks.map(({ id }) => id).join(', ')}`);
  }
  const isNamed = ({ id, finds }: Check) => onlyIds.includes(id) || finds.some((found) => onlyIds.includes(found));
  const named = onlyIds.length === 0 ? checks : checks.filter(isNamed);
  const wholes = named.filter(({ id }) => onlyIds.includes(id));
  const remaining = named.filter(({ id }) => !skipIds.includes(id));
  return {
    checks: remaining,
    isSelected: ({ id }) =>
      !skipIds.includes(id) &&
      (onlyIds.length === 0 || onlyIds.includes(id) || wholes.some(({ finds }) => finds.some((found) => found === id))),
  };
}

function split(text: string): readonly string[] {
  return text.split(',').flatMap((id) => (id.trim() === '' ? [] : [id.trim()]));
}
