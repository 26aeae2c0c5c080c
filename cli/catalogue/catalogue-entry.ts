import type { Finding } from '../finding.ts';

/** One kind of finding, for every case of it. */
export type CatalogueEntry = {
  /** What is so, in general; no full stop. */
  readonly title: string;
  /** Who loses what; one or two sentences. */
  readonly why: string;
  /** How it is cured in general; for the docs, a case says its own commands. */
  readonly cure: string;
  readonly severity: Finding['severity'];
  /** True when the running agent, or `tke-eni repair`, mends it. */
  readonly isOurs: boolean;
};
