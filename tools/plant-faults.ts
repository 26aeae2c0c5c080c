/**
 * Plants the faults of `tools/mutations.json`, one at a time, in a copy of this working tree, and plays the run of the simulation,
 * or runs the test file, that must find it: `node tools/plant-faults.ts [PART OF A NAME...]`. For each it prints `found`,
 * `not found`, `not reached` when the simulation has the hash that it has without the fault: then the line was never executed, or
 * `timed out` when the run takes ten times as long as without it, and a minute at least: then it is ended. Exit code 1 unless all are
 * found.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A fault to plant: the text of a file that is there once, what takes its place, and the run that must find it. */
export type Mutation = {
  readonly name: string;
  readonly file: string;
  readonly text: string;
  readonly instead: string;
  /** Arguments of test/simulation/main.ts, or a test file. */
  readonly run: string;
};

/** How a run ended, the hashes of its simulations, its first complaint, and how long it took. */
type Run = {
  readonly end: 'well' | 'failed' | 'timed out';
  readonly hash: string;
  readonly says: string;
  readonly tookMs: number;
};

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAIN = 'test/simulation/main.ts';
const MAX_OUTPUT = 64 * 1024 * 1024;
const AVA = 'node_modules/ava/entrypoints/cli.js';
const WIDTH = 150;
/** Longest time of a run without a fault. */
const CLEAN_MS = 900_000;
const LEAST_MS = 60_000;
const SLOWER = 10;

/** Puts a fault in the place of the text of a file. Pure. @throws Error when the text is not there exactly once */
export function plant(content: string, { name, file, text, instead }: Mutation): string {
  const [before, after, ...more] = content.split(text);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`${name}: its text is ${content.split(text).length - 1} times in ${file}`);
  return before + instead + after;
}

function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'planted-'));
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' });
  for (const path of listed.split('\n').filter((one) => /\.(?:ts|js|json|yaml)$/.test(one))) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    cpSync(join(ROOT, path), join(copy, path));
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Runs Node with these arguments in a folder, and ends it after `limitMs`. */
export function runNode(cwd: string, command: readonly string[], limitMs: number): Run {
  const startMs = performance.now();
  const { status, stdout, stderr, error } = spawnSync(process.execPath, command, {
    ...{ cwd, encoding: 'utf8', timeout: Math.ceil(limitMs), killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT },
  });
  const tookMs = performance.now() - startMs;
  const isTimedOut = error !== undefined && 'code' in error && error.code === 'ETIMEDOUT';
  const hash = [...stdout.matchAll(/"hash":"([0-9a-f]+)"/g)].map(([, one]) => one).join(' ');
  const why =
    stdout.split('\n').find((line) => /^(?: {2}[A-Zrs0-9]|not ok)/.test(line)) ??
    stderr.split('\n').find((line) => /Error/.test(line));
  const end = isTimedOut ? 'timed out' : status === 0 ? 'well' : 'failed';
  return { end, hash, says: (why ?? '').trim().slice(0, WIDTH), tookMs };
}

function runIn(copy: string, args: string, limitMs: number): Run {
  const command = args.startsWith('test/') ? [AVA, '--tap', args] : [MAIN, ...args.split(' ')];
  return runNode(copy, command, limitMs);
}

/** Tells what a run with a fault shows, beside the same run without it. Pure. */
export function verdictOf(planted: Pick<Run, 'end' | 'hash'>, undisturbed: Pick<Run, 'hash'>): string {
  if (planted.end === 'timed out') return planted.end;
  if (planted.end === 'failed') return 'found';
  return planted.hash !== '' && planted.hash === undisturbed.hash ? 'not reached' : 'not found';
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  const all: readonly Mutation[] = JSON.parse(readFileSync(join(ROOT, 'tools/mutations.json'), 'utf8'));
  const chosen = all.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
  const copy = copyTree();
  const clean = new Map<string, Run>();
  let missed = 0;
  try {
    for (const mutation of chosen) {
      const { name, file, run } = mutation;
      const undisturbed = clean.get(run) ?? runIn(copy, run, CLEAN_MS);
      clean.set(run, undisturbed);
      if (undisturbed.end !== 'well') throw new Error(`${run} without a fault ${undisturbed.end}: ${undisturbed.says}`);
      const content = readFileSync(join(copy, file), 'utf8');
      writeFileSync(join(copy, file), plant(content, mutation));
      const planted = runIn(copy, run, Math.max(LEAST_MS, SLOWER * undisturbed.tookMs));
      writeFileSync(join(copy, file), content);
      const verdict = verdictOf(planted, undisturbed);
      if (verdict !== 'found') missed += 1;
      console.log(`${verdict.padEnd(11)} ${name} (${run})${planted.says === '' ? '' : `: ${planted.says}`}`);
    }
  } finally {
    rmSync(copy, { recursive: true });
  }
  console.log(`${chosen.length} faults, ${missed} not found`);
  process.exitCode = missed === 0 ? 0 : 1;
}
