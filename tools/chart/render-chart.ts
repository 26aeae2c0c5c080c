import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { CRD_FILES } from '../gen-crd.ts';
import { renderRules } from './render-rules.ts';
import { renderTemplate, TEMPLATES } from './templates.ts';
import { renderValuesSchema } from './values-schema.ts';

const ROOT = join(import.meta.dirname, '../..');
const BY_HAND = join(ROOT, 'conf/helm/tke-eni');
const CRDS = 'conf/crd/';
const MONITORING = ['alerts.yaml', 'pod-monitors.yaml', 'dashboard.json'];

/**
 * Renders all files of the chart, by their paths in it: those written by hand as they are, templates of the manifests, the definitions
 * and what monitoring takes as they are (a chart cannot reach outside its folder), the rules of settings, and the schema of values.
 * @throws Error naming the manifest that lacks what its template changes, or the values that the schema has no rule for
 */
export function renderChart(): ReadonlyMap<string, string> {
  const byHand = readdirSync(BY_HAND, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(BY_HAND, join(parentPath, name)));
  const definitions = Object.entries(CRD_FILES).filter(([path]) => path.startsWith(CRDS));
  return new Map([
    ...byHand.map((path) => [path, readFileSync(join(BY_HAND, path), 'utf8')] as const),
    ...TEMPLATES.map((template) => [`templates/${template.to}`, renderTemplate(template, read)] as const),
    ...definitions.map(([path, render]) => [`crds/${path.slice(CRDS.length)}`, render()] as const),
    ...MONITORING.map((name) => [`files/${name}`, read(`conf/monitoring/${name}`)] as const),
    ['files/rules.json', renderRules()],
    ['values.schema.json', renderValuesSchema(readFileSync(join(BY_HAND, 'values.yaml'), 'utf8'))],
  ]);
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}
