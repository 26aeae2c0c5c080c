import { AGENT_FINDINGS } from './catalogue/agent-findings.ts';
import type { CatalogueEntry } from './catalogue/catalogue-entry.ts';
import { CLUSTER_FINDINGS } from './catalogue/cluster-findings.ts';
import { ENI_FINDINGS } from './catalogue/eni-findings.ts';
import { HOST_FINDINGS } from './catalogue/host-findings.ts';
import { POD_FINDINGS } from './catalogue/pod-findings.ts';
import { ROUTING_FINDINGS } from './catalogue/routing-findings.ts';
import type { Finding } from './finding.ts';
import type { ElementId } from './node/element-id.ts';

/**
 * Every kind of finding by its id: what doctor, explain, diff, check, graph, cluster and bundle can say. docs/reference/findings.md
 * is made of it.
 */
export const CATALOGUE = {
  ...ROUTING_FINDINGS,
  ...POD_FINDINGS,
  ...ENI_FINDINGS,
  ...AGENT_FINDINGS,
  ...HOST_FINDINGS,
  ...CLUSTER_FINDINGS,
} as const satisfies Readonly<Record<string, CatalogueEntry>>;

/** Id of a kind of finding: stable, kebab-case. */
export type FindingId = keyof typeof CATALOGUE;

/** What a finding adds to its entry in the catalogue. */
export type FindingParts = {
  /** What is so here, with names and numbers. One line. */
  readonly what: string;
  /** Commands or steps that cure it here, in order; [] for what needs none. */
  readonly fix: readonly string[];
  readonly subjects: readonly ElementId[];
  /** Where this case weighs other than the kind in general. */
  readonly severity?: Finding['severity'];
  /** Where this case is ours, or not, other than the kind in general. */
  readonly isOurs?: boolean;
  /** Where this case hurts other than the kind in general. */
  readonly why?: string;
};

/** Builds a finding: what the catalogue says of its kind, and what is so here. */
export function finding(id: FindingId, parts: FindingParts): Finding {
  const entry: CatalogueEntry = CATALOGUE[id];
  return {
    id,
    severity: parts.severity ?? entry.severity,
    what: parts.what,
    why: parts.why ?? entry.why,
    fix: parts.fix,
    isOurs: parts.isOurs ?? entry.isOurs,
    subjects: parts.subjects,
  };
}
