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
