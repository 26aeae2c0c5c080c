import type { FindingId } from '../catalogue.ts';
import type { Finding } from '../finding.ts';
import type { Known } from '../node/node-facts.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** One thing that the doctor looks at. Pure: all it knows comes in as facts. */
export type Check = {
  /** Stable, kebab-case; what `--only` and `--skip` take. */
  readonly id: string;
  /** What it looks at, for people; no full stop. */
  readonly looksAt: string;
  /** All that it can find; `--only` and `--skip` take these too. */
  readonly finds: readonly FindingId[];
  readonly judge: (facts: DoctorFacts) => Verdict;
};

/** What came of a check. */
export type Verdict =
  /** Notes: evidence worth seeing with `-o wide` and in JSON, a line each; nothing that somebody must act on. */
  | { readonly kind: 'done'; readonly findings: readonly Finding[]; readonly notes: readonly string[] }
  /** It could not be looked at, or there is nothing to look at here. */
  | { readonly kind: 'skipped'; readonly why: string };

/** Says what a check found. */
export function done(findings: readonly Finding[], notes: readonly string[] = []): Verdict {
  return { kind: 'done', findings, notes };
}

/** Says why a check was not made. */
export function skipped(why: string): Verdict {
  return { kind: 'skipped', why };
}

/** Judges what is known; skips with the reason and the next step where it is not. */
export function whenKnown<T>(fact: Known<T>, judge: (value: T) => Verdict): Verdict {
  return fact.kind === 'known' ? judge(fact.value) : skipped(`${fact.why}; ${fact.next}`);
}

/** Says that a service of the host does not run, as far as its files tell. */
export function notRunning(service: string, { hasSystemd }: { readonly hasSystemd: boolean }): Verdict {
  return skipped(
    hasSystemd
      ? `${service} does not run`
      : `${service}: no systemd is to be seen below the host’s root; see --host-root`,
  );
}
