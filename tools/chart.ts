/** Makes the Helm chart in dist/helm/tke-eni: `node tools/chart.ts`. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { renderChart } from './chart/render-chart.ts';

/** Makes the chart in a folder, in place of what is there; the folder has all files of it or is not there. Returns the folder. */
export function makeChart(folder: string): string {
  const parent = dirname(folder);
  mkdirSync(parent, { recursive: true });
  const made = mkdtempSync(join(parent, '.chart-'));
  for (const [path, text] of renderChart()) {
    mkdirSync(dirname(join(made, path)), { recursive: true });
    writeFileSync(join(made, path), text);
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(made, folder);
  return folder;
}

if (import.meta.main) {
  const folder = makeChart(join(import.meta.dirname, '../dist/helm/tke-eni'));
  process.stdout.write(`${relative(process.cwd(), folder)}: the chart, for helm install\n`);
}
