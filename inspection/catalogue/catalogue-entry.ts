import type { Finding } from './finding.ts';

/** Catalogue entry of one kind of finding, valid for every case of it. */
export type CatalogueEntry = {
  /** What is wrong, in general; no full stop. */
  readonly title: string;
  /** Effect on Pods, node or cluster; one or two sentences. */
  readonly why: string;
  /** How to fix it in general, for the docs. A finding has its own commands in `fix`. */
  readonly cure: string;
  readonly severity: Finding['severity'];
  /** True when the running agent or `tke-eni repair` repairs it. */
  readonly isOurs: boolean;
};
