import type { FindingId } from '../../../inspection/catalogue/catalogue.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** One check of the doctor. All input comes in as facts. */
export type Check = {
  /** Id of the check: stable, kebab-case. `--only` and `--skip` accept it. */
  readonly id: string;
  /** Scope of the check as text; no full stop. */
  readonly scope: string;
  /** Ids of all findings that the check can return; `--only` and `--skip` accept these too. */
  readonly finds: readonly FindingId[];
  readonly evaluate: (facts: DoctorFacts) => Verdict;
};

/** Outcome of a check. */
export type Verdict =
  /** Notes: observed values for `-o wide` and JSON, a line each. They need no action. */
  | { readonly kind: 'done'; readonly findings: readonly Finding[]; readonly notes: readonly string[] }
  /** The check could not be made, or does not apply to this node. */
  | { readonly kind: 'skipped'; readonly why: string };

/** Returns the outcome of a check that was made. */
export function done(findings: readonly Finding[], notes: readonly string[] = []): Verdict {
  return { kind: 'done', findings, notes };
}

/** Returns the outcome of a check that was not made. */
export function skipped(why: string): Verdict {
  return { kind: 'skipped', why };
}

/** Runs a check on a known fact. For an unknown fact the check is skipped, with the reason and the next step. */
export function whenKnown<T>(fact: Known<T>, evaluate: (value: T) => Verdict): Verdict {
  return fact.kind === 'known' ? evaluate(fact.value) : skipped(`${fact.why}; ${fact.next}`);
}

/** Returns the outcome for a service that does not run on the host, as far as the host's files show. */
export function notRunning(service: string, { hasSystemd }: { readonly hasSystemd: boolean }): Verdict {
  return skipped(
    hasSystemd ? `${service} does not run` : `${service}: no systemd was found below the host’s root; see --host-root`,
  );
}
