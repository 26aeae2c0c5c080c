import { readFileSync } from 'node:fs';
import { CRD_FILES } from '../gen-crd.ts';
import { renderChartReadme } from './readme.ts';
import { renderTemplate, TEMPLATES } from './templates.ts';
import { renderValuesSchema } from './values-schema.ts';

const CHART = 'conf/helm/tke-eni';
const CRDS = 'conf/crd/';
const MONITORING = ['alerts.yaml', 'pod-monitors.yaml', 'dashboard.json'];

/**
 * Files of the Helm chart that are made of others, by path: templates of the manifests, the definitions and what monitoring
 * takes as they are (a chart cannot reach outside its folder), the schema of values, and the table in its README.
 */
export const CHART_FILES: Readonly<Record<string, () => string>> = Object.fromEntries([
  ...TEMPLATES.map((template) => [`${CHART}/templates/${template.to}`, () => renderTemplate(template, read)]),
  ...Object.entries(CRD_FILES)
    .filter(([path]) => path.startsWith(CRDS))
    .map(([path, render]) => [`${CHART}/crds/${path.slice(CRDS.length)}`, render] as const),
  ...MONITORING.map((name) => [`${CHART}/files/${name}`, () => read(`conf/monitoring/${name}`)]),
  [`${CHART}/values.schema.json`, () => renderValuesSchema(read(`${CHART}/values.yaml`))],
  [`${CHART}/README.md`, () => renderChartReadme(read(`${CHART}/README.md`), read(`${CHART}/values.yaml`))],
]);

function read(path: string): string {
  return readFileSync(path, 'utf8');
}
