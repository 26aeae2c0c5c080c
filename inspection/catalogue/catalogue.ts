import { AGENT_FINDINGS } from './agent-findings.ts';
import { BRIDGE_FINDINGS } from './bridge-findings.ts';
import type { CatalogueEntry } from './catalogue-entry.ts';
import { CLUSTER_FINDINGS } from './cluster-findings.ts';
import type { ElementId } from './element-id.ts';
import { ENI_FINDINGS } from './eni-findings.ts';
import type { Finding } from './finding.ts';
import { HOST_FINDINGS } from './host-findings.ts';
import { POD_FINDINGS } from './pod-findings.ts';
import { ROUTING_FINDINGS } from './routing-findings.ts';

/**
 * Every kind of finding by its id, as doctor, explain, diff, check, graph, cluster and bundle report them.
 * docs/reference/findings.md is generated from this table.
 */
export const CATALOGUE = {
  ...ROUTING_FINDINGS,
  ...POD_FINDINGS,
  ...ENI_FINDINGS,
  ...AGENT_FINDINGS,
  ...HOST_FINDINGS,
  ...BRIDGE_FINDINGS,
  ...CLUSTER_FINDINGS,
} as const satisfies Readonly<Record<string, CatalogueEntry>>;

/** Id of a kind of finding: stable, kebab-case. */
export type FindingId = keyof typeof CATALOGUE;

/** The facts of one finding. Optional fields override the catalogue entry of its kind. */
type FindingDetails = {
  /** What was found here, with names and numbers. One line. */
  readonly what: string;
  /** Commands or steps that fix this case, in order; [] where nothing has to be done. */
  readonly fix: readonly string[];
  readonly subjects: readonly ElementId[];
  /** Severity of this case where it differs from the severity of its kind. */
  readonly severity?: Finding['severity'];
  /** Whether tke-eni repairs this case, where that differs from its kind. */
  readonly isOurs?: boolean;
  /** Effect of this case where it differs from the effect of its kind. */
  readonly why?: string;
};

/** Builds a finding from the catalogue entry of its kind and the facts of this case. */
export function finding(id: FindingId, details: FindingDetails): Finding {
  const entry: CatalogueEntry = CATALOGUE[id];
  return {
    id,
    severity: details.severity ?? entry.severity,
    what: details.what,
    why: details.why ?? entry.why,
    fix: details.fix,
    isOurs: details.isOurs ?? entry.isOurs,
    subjects: details.subjects,
  };
}
