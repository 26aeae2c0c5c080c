/**
 * Runs benchmark suites, prints a table of each and writes `bench/results.json`: the default set without arguments, the
 * suites that are named, or `all`. A suite that fails is reported and makes the exit code 1; the others run on.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { renderTable } from './render-table.ts';
import { type BenchMachine, mergeResults, parseResults, type SuiteResults } from './results.ts';
import { chooseSuites, SUITES } from './suites.ts';

const RESULTS = 'bench/results.json';
const GIB = 2 ** 30;

const startedMs = performance.now();
const commit = readCommit();
for (const name of wantedSuites()) await measure(name);
console.error(`== ${secondsSince(startedMs)} s in all`);

async function measure(suite: string): Promise<void> {
  console.error(`== ${suite}`);
  const run = { machine: readMachine(), commit, date: new Date().toISOString() };
  const beganMs = performance.now();
  try {
    const rows = (await (await SUITES[suite]?.load())?.runSuite()) ?? [];
    const seconds = secondsSince(beganMs);
    console.error(`   ${suite}: ${seconds} s`);
    if (rows.length === 0) return;
    console.log(renderTable(rows));
    // After each suite: a run that is ended keeps what it has.
    save({ suite, run: { ...run, seconds }, rows });
  } catch (error) {
    console.error(`${suite} failed:`, error);
    process.exitCode = 1;
  }
}

function save(results: SuiteResults): void {
  const earlier = existsSync(RESULTS) ? parseResults(readFileSync(RESULTS, 'utf8')) : { runs: {}, rows: [] };
  const merged = mergeResults(earlier, [results], Object.keys(SUITES));
  writeFileSync(RESULTS, `${JSON.stringify(merged, null, 2)}\n`);
}

function wantedSuites(): readonly string[] {
  try {
    return chooseSuites(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  }
}

function readMachine(): BenchMachine {
  return {
    kernel: release(),
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / GIB),
    node: process.version,
    load: loadavg()[0] ?? Number.NaN,
  };
}

/** Reads the commit before any suite writes its rows. */
function readCommit(): string {
  const git = (...args: readonly string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', '.', `:!${RESULTS}`);
    return `${git('rev-parse', 'HEAD')}${changed === '' ? '' : '-dirty'}`;
  } catch {
    return 'unknown';
  }
}

function secondsSince(ms: number): number {
  return Math.round((performance.now() - ms) / 1000);
}
