/**
 * Runs the benchmark suites (all, or those named as arguments), prints a table and writes `bench/results.json`.
 * A suite that fails is reported and makes the exit code 1; the others run on.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { renderTable } from './render-table.ts';
import type { BenchRow } from './row.ts';

type Suite = { readonly runSuite: () => Promise<readonly BenchRow[]> };

const SUITES: Readonly<Record<string, () => Promise<Suite>>> = {
  netlink: () => import('./netlink.ts'),
  forwarding: () => import('./forwarding.ts'),
  'cni-start': () => import('./cni-start.ts'),
  cni: () => import('./cni.ts'),
  gr: () => import('./gr.ts'),
  agent: () => import('./agent.ts'),
  ipamd: () => import('./ipamd.ts'),
  'device-plugin': () => import('./device-plugin.ts'),
  cluster: () => import('./cluster.ts'),
  cli: () => import('./cli.ts'),
  scheduler: () => import('./scheduler.ts'),
  'foreign-input': () => import('./foreign-input.ts'),
  ccm: () => import('./ccm.ts'),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(SUITES, name));
if (unknown.length > 0) {
  console.error(`no such suite: ${unknown.join(', ')}; known are ${Object.keys(SUITES).join(', ')}`);
  process.exit(2);
}

const rows: BenchRow[] = [];
/** They said why. */
const notRun = new Set<string>();
for (const [name, load] of Object.entries(SUITES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.error(`== ${name}`);
  try {
    const found = await (await load()).runSuite();
    rows.push(...found);
    if (found.length === 0) {
      notRun.add(name);
      continue;
    }
    console.log(renderTable(found));
  } catch (error) {
    console.error(`${name} failed:`, error);
    process.exitCode = 1;
  }
}
const RESULTS = 'bench/results.json';
const machine = { kernel: release(), cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, node: process.version };
// A suite that was not run keeps the rows that it had.
const measured = new Set(rows.map((row) => row.suite));
const isKept = ({ suite }: BenchRow) => (wanted.length === 0 ? notRun.has(suite) : !measured.has(suite));
const kept = earlierRows().filter(isKept);
writeFileSync(RESULTS, `${JSON.stringify({ machine, rows: [...kept, ...rows] }, null, 2)}\n`);

function earlierRows(): readonly BenchRow[] {
  if (!existsSync(RESULTS)) return [];
  // Written by an earlier run of this very program.
  return (JSON.parse(readFileSync(RESULTS, 'utf8')) as { readonly rows: readonly BenchRow[] }).rows;
}
