/**
 * Writes the docs, manifests and message tables that are made from the source; with `--check` compares them instead and exits 1 when one differs.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { AGENT_PROGRAM } from '../agent/config/agent-config.ts';
import { CCM_PROGRAM } from '../cloud-controller-manager/config/options.ts';
import { IPAMD_PROGRAM } from '../ipamd/config/options.ts';
import { renderConfigDoc } from '../runtime/settings/render-options.ts';
import { SCHEDULER_PROGRAM } from '../scheduler/config/options.ts';
import { WEBHOOK_PROGRAM } from '../webhook/options.ts';
import { renderChartReadme } from './chart/readme.ts';
import { renderCliDocs } from './cli-docs.ts';
import { renderDashboard } from './dashboard/render.ts';
import { renderErrorDocs } from './error-docs.ts';
import { renderEventDocs } from './event-docs.ts';
import { renderFindingDocs } from './finding-docs.ts';
import { CRD_FILES } from './gen-crd.ts';
import { MESSAGE_FILES } from './gen-messages.ts';
import { STATUS_POLICY_FILES } from './gen-status-policy.ts';
import { renderIngressAnnotationDocs } from './ingress-annotation-docs.ts';
import { renderMetricDocs } from './metric-docs.ts';
import { renderNameDocs } from './name-docs.ts';
import { renderServiceAnnotationDocs } from './service-annotation-docs.ts';

const CHART_README = 'conf/helm/tke-eni/README.md';
const CHART_VALUES = 'conf/helm/tke-eni/values.yaml';

const DOCS: Readonly<Record<string, () => string>> = {
  'docs/reference/agent-config.md': () => renderConfigDoc(AGENT_PROGRAM),
  'docs/reference/ipamd-config.md': () => renderConfigDoc(IPAMD_PROGRAM),
  'docs/reference/ip-scheduler-config.md': () => renderConfigDoc(SCHEDULER_PROGRAM),
  'docs/reference/ip-webhook-config.md': () => renderConfigDoc(WEBHOOK_PROGRAM),
  'docs/reference/cloud-controller-manager-config.md': () => renderConfigDoc(CCM_PROGRAM),
  'docs/reference/errors.md': renderErrorDocs,
  'docs/reference/annotations.md': renderNameDocs,
  'docs/reference/cli.md': () => renderCliDocs(),
  'docs/reference/events.md': renderEventDocs,
  'docs/reference/findings.md': renderFindingDocs,
  'docs/reference/metrics.md': renderMetricDocs,
  'docs/reference/service-annotations.md': renderServiceAnnotationDocs,
  'docs/reference/ingress-annotations.md': renderIngressAnnotationDocs,
  'conf/monitoring/dashboard.json': renderDashboard,
  ...CRD_FILES,
  ...STATUS_POLICY_FILES,
  ...MESSAGE_FILES,
  [CHART_README]: () => renderChartReadme(readFileSync(CHART_README, 'utf8'), readFileSync(CHART_VALUES, 'utf8')),
};

const isCheck = process.argv.includes('--check');
for (const [path, render] of Object.entries(DOCS)) {
  const wanted = render();
  const present = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  if (present === wanted) continue;
  if (isCheck) {
    console.error(`${path} is not what the source says; run: make gen`);
    process.exitCode = 1;
  } else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, wanted);
    console.error(`wrote ${path}`);
  }
}
