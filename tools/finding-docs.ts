import { AGENT_FINDINGS } from '../inspection/catalogue/agent-findings.ts';
import { BRIDGE_FINDINGS } from '../inspection/catalogue/bridge-findings.ts';
import type { CatalogueEntry } from '../inspection/catalogue/catalogue-entry.ts';
import { CLUSTER_FINDINGS } from '../inspection/catalogue/cluster-findings.ts';
import { ENI_FINDINGS } from '../inspection/catalogue/eni-findings.ts';
import { HOST_FINDINGS } from '../inspection/catalogue/host-findings.ts';
import { POD_FINDINGS } from '../inspection/catalogue/pod-findings.ts';
import { ROUTING_FINDINGS } from '../inspection/catalogue/routing-findings.ts';

/** Renders `docs/reference/findings.md` of the catalogue that the commands take their findings from. */
export function renderFindingDocs(): string {
  return [
    '<!-- Written by `make gen` from inspection/catalogue/. -->',
    '# Findings',
    '',
    'What `tke-eni doctor`, `explain`, `diff`, `check`, `graph`, `cluster` and `bundle` can find. Ids do not change: `-o json` has them as',
    '`id`, and `doctor --only` and `--skip` take them. A finding of one case has its own names, numbers and commands.',
    '',
    '**error**: packets are lost or Pods fail; **warning**: it will cause a failure later; **info**: worth knowing. The weight here is the usual',
    'one, a case may weigh otherwise. **ours**: the running agent repairs it, and so does `tke-eni repair`.',
    '',
    ...section('Rules, routes, nftables', ROUTING_FINDINGS),
    ...section('Pods', POD_FINDINGS),
    ...section('ENIs and MTU', ENI_FINDINGS),
    ...section('Agent and CNI', AGENT_FINDINGS),
    ...section('GlobalRoute Pods', BRIDGE_FINDINGS),
    ...section('The node', HOST_FINDINGS),
    ...section('The cluster', CLUSTER_FINDINGS),
  ].join('\n');
}

function section(title: string, entries: Readonly<Record<string, CatalogueEntry>>): readonly string[] {
  const rows = Object.entries(entries).map(([id, entry]) => ({ id, ...entry }));
  return [
    `## ${title}`,
    '',
    ...rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)).flatMap((row) => [...paragraph(row), '']),
  ];
}

function paragraph(row: CatalogueEntry & { readonly id: string }): readonly string[] {
  const weight = row.isOurs ? `${row.severity}, ours` : row.severity;
  return [`### ${row.id}`, '', `${row.title} (${weight}).`, '', row.why, '', `**Cure:** ${row.cure}`];
}
