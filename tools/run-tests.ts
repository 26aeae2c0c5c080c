/**
 * Runs the named suites (`check unit kernel e2e long laws cluster`) one after the other and closes with one line of totals.
 * A suite named as `--without=SUITE` is not run, and counts as one skipped. With `--within=MINUTES` the suites `long` and
 * `laws` begin no file after that time: those left out are drawn by chance, named, and count as skipped. Exit code 1 when
 * anything failed or when a suite ran no test; 2 when a suite cannot be run here. The first and the last line say the seed
 * of random tests. The lines before the last name once more what failed, so that the end of a long log is enough.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readSeed } from '../sim/support/seed.ts';
import { seededRandom } from '../sim/support/seeded-random.ts';
import { describeMissing, findKubeAssets } from '../test/cluster/kube-assets.ts';
import { BUILT_VARIABLE, buildAll, CNI_DIR } from './build.ts';
import { bundleAva } from './bundle-ava.ts';
import { BUNDLED_AVA_VARIABLE, SHARED_VARIABLE } from './bundled-ava.ts';
import { findLawFiles } from './check-seeds.ts';
import { failedFiles } from './failed-files.ts';
import { findPartedFiles, PART_VARIABLE } from './parted-files.ts';
import { filesOf, splitCommand } from './split-command.ts';
import { parseFigure, parseTapLine, type TapTotals } from './tap.ts';
import { parseCosts, renderCosts } from './test-cost.ts';

type Suite = {
  readonly name: string;
  readonly commands: readonly (readonly string[])[];
  readonly tap: boolean;
  /** True: a file that fails beside others runs once more alone, and that counts. Both are printed. */
  readonly isJudgedAlone?: true;
  /** True: `--within` bounds its time. */
  readonly isBounded?: true;
  /** Variables of its processes; asked for once all is built. */
  readonly env?: () => Readonly<Record<string, string>>;
};

const ROOT_ONLY = ['kernel', 'e2e', 'long', 'laws', 'cluster'];
const SERIAL = '--concurrency=1';
/** Where the files of a suite write what they cost, in the suite's own folder. */
const COSTS = 'costs.jsonl';
const ROOT = new URL('..', import.meta.url).href;

/** Without KUBE_ASSETS they skip themselves; the unit suite runs them too where it is set. */
const REAL_API_TESTS = [
  'test/kube-api/real-contract.test.ts',
  'test/kube/real-client-cases.test.ts',
  'test/ipamd/shell/real-api.test.ts',
  'test/ipamd/guests/cilium/real-api.test.ts',
  'test/cloud-controller-manager/ingresses/real-api.test.ts',
  'test/conf/real-api.test.ts',
  'test/scheduler/real-api.test.ts',
  'test/webhook/real-api.test.ts',
  'test/docs/real-api.test.ts',
];

/** Files that prove less in company: one that sends thousands of packets a second and misses none. */
const ALONE = ['test/e2e/no-hole.test.ts'];
/** The same of the suite `long`, and those that try as many moments of death as fit their time. */
const LONG_ALONE = [
  'no-hole',
  'migration.long',
  'crash-add-del.long',
  'crash-every-call.long',
  'crash-every-gr-call.long',
].map((name) => `test/e2e/${name}.test.ts`);

/** Time after which a bounded suite begins no file, milliseconds; undefined: each file runs. */
let withinMs: number | undefined;

/** What failed in this run: suite and title of each, for the end. */
const failures: string[] = [];

/** What failed beside others and passed alone. */
const unsteady: string[] = [];

/** Most files that run once more alone: when more fail, it is not for their neighbours. */
const MAX_ALONE = 3;

/** Files of the suite `long`, which no other suite runs. */
const LONG = 'test/**/*.long.test.ts';
/** Files of which it runs a part. */
const PARTED = findPartedFiles();
/** Their variable. */
const LONG_PART = { [PART_VARIABLE]: 'long' };

const SUITES: readonly Suite[] = [
  {
    name: 'check',
    tap: false,
    commands: [
      ['biome', 'check', '.'],
      ['tsc', '--noEmit', '-p', '.'],
      ['tsc', '--noEmit', '-p', 'cli/commands/graph/page'],
      ['node', 'tools/check-layers.ts'],
      ['node', 'tools/check-docstrings.ts'],
      ['node', 'tools/check-exports.ts'],
      ['node', 'tools/check-seeds.ts'],
      ['node', 'tools/check-callbacks.ts'],
      ['node', '--disable-warning=ExperimentalWarning', 'tools/check-clocks.ts'],
      ['node', '--disable-warning=ExperimentalWarning', 'tools/check-timers.ts'],
      ['node', '--disable-warning=ExperimentalWarning', 'tools/check-file-reads.ts'],
      ['node', '--disable-warning=ExperimentalWarning', 'tools/check-error-events.ts'],
      ['node', 'tools/check-words.ts'],
      ['node', 'tools/gen-docs.ts', '--check'],
    ],
  },
  {
    name: 'unit',
    tap: true,
    env: () => ({ [SHARED_VARIABLE]: '1' }),
    commands: [
      [
        'ava',
        '--tap',
        // Many wait, for what does not answer and for processes to start: two cores carry six.
        '--concurrency=6',
        'test/**/*.test.ts',
        ...['kernel', 'e2e', 'vpc', 'examples', 'cluster'].map((folder) => `!test/${folder}/**`),
        `!${LONG}`,
      ],
    ],
  },
  {
    name: 'kernel',
    tap: true,
    commands: [
      [
        'ava',
        '--tap',
        '--concurrency=4',
        ...['test/kernel/**/*.test.ts', 'test/vpc/**/*.test.ts', 'test/examples/**', `!${LONG}`],
      ],
    ],
  },
  // Each file runs agents and a VPC of its own. Most wait half of their time, for pings that must be lost, leases and
  // timeouts: five at a time keep two cores busy.
  {
    name: 'e2e',
    tap: true,
    // As on a node: the runtime calls the launcher. The suite long calls the complete program.
    env: () => ({ TKE_ENI_CNI_BIN: process.env['TKE_ENI_CNI_BIN'] ?? (existsSync(CNI_DIR) ? CNI_DIR : '') }),
    commands: [
      ['ava', '--tap', SERIAL, '--timeout=10m', ...ALONE],
      [
        ...['ava', '--tap', '--concurrency=5', '--timeout=10m', 'test/e2e/**/*.test.ts', `!${LONG}`],
        ...ALONE.map((file) => `!${file}`),
      ],
    ],
  },
  // What takes long and finds little that the rest of its table, which the suites above run, does not find.
  {
    name: 'long',
    tap: true,
    // Clusters and storms beside each other: what waits for seconds can wait for too long.
    isJudgedAlone: true,
    isBounded: true,
    env: () => LONG_PART,
    commands: [
      ['ava', '--tap', '--concurrency=2', '--timeout=30m', LONG, ...PARTED, '!test/e2e/**'],
      ['ava', '--tap', SERIAL, '--timeout=30m', ...LONG_ALONE],
      [
        ...['ava', '--tap', '--concurrency=3', '--timeout=30m', 'test/e2e/**/*.long.test.ts'],
        ...PARTED.filter((file) => file.startsWith('test/e2e/')),
        ...LONG_ALONE.map((file) => `!${file}`),
      ],
    ],
  },
  // Every law and every test with a list of seeds; one law may take minutes.
  {
    name: 'laws',
    tap: true,
    isBounded: true,
    env: () => ({ RUNS: process.env['RUNS'] || '10', ...LONG_PART }),
    commands: [['ava', '--tap', '--concurrency=2', '--timeout=30m', ...findLawFiles()]],
  },
  // First what needs a real API server alone, then clusters: each file has one of its own, a gigabyte and a core.
  {
    name: 'cluster',
    tap: true,
    commands: [
      ['ava', '--tap', SERIAL, '--timeout=10m', ...REAL_API_TESTS],
      ['ava', '--tap', SERIAL, '--timeout=10m', 'test/cluster/**/*.test.ts'],
    ],
  },
];

/** Runs one command to its end and keeps what it says, so that several may run at once. */
async function run(command: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  const child = spawn(command[0] ?? '', command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

/** Runs one command that speaks TAP; prints a line for each test. Resolves to what it counted. */
async function runTap(
  suite: string,
  command: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<TapTotals> {
  const child = spawn(command[0] ?? '', command.slice(1), {
    stdio: ['ignore', 'pipe', 'inherit'],
    // What one file compiles the others need not: a third of the processor time of a small one.
    env: {
      ...process.env,
      ...env,
      TKE_ENI_TEST_COSTS: join(folder, COSTS),
      NODE_COMPILE_CACHE: join(folder, 'compiled'),
      [BUNDLED_AVA_VARIABLE]: folder,
    },
  });
  const exited = new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
  const totals = { passed: 0, failed: 0, skipped: 0 };
  let hasFailed = false;
  for await (const line of createInterface({ input: child.stdout })) {
    const outcome = parseTapLine(line);
    if (outcome === undefined) {
      // What AVA says about a failure is indented YAML, and `#   ` before what the test logged; other lines say nothing new.
      const figure = parseFigure(line);
      if (figure !== undefined) console.log(`         ${figure}`);
      else if (/^(\s+|Bail)/.test(line) || (hasFailed && /^# {3}/.test(line))) console.log(line);
      continue;
    }
    hasFailed = outcome.kind === 'failed';
    totals[outcome.kind] += 1;
    if (outcome.kind === 'failed') failures.push(`${suite}: ${outcome.title}`);
    console.log(`  ${{ passed: 'ok  ', failed: 'FAIL', skipped: 'skip' }[outcome.kind]} ${outcome.title}`);
  }
  const code = await exited;
  if (code !== 0 && totals.failed === 0) {
    totals.failed += 1;
    failures.push(`${suite}: ${command[0]} ended with ${code}, and no test failed`);
  }
  return totals;
}

/** Runs one suite. Prints what it cost, and the files that took longest. */
async function runSuite(suite: Suite): Promise<TapTotals> {
  const folder = mkdtempSync(join(tmpdir(), 'tke-eni-costs-'));
  try {
    return await runCommands(suite, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function runCommands(suite: Suite, folder: string): Promise<TapTotals> {
  console.log(`== ${suite.name}`);
  writeFileSync(join(folder, COSTS), '');
  const startedMs = performance.now();
  const totals = { passed: 0, failed: 0, skipped: 0 };
  // Checks read and write nothing of each other's; tests that ran side by side with other tests would be hard to read.
  const checks = suite.tap ? [] : suite.commands.map(async (command) => ({ command, ...(await run(command)) }));
  for (const check of checks) {
    const { command, code, output } = await check;
    totals[code === 0 ? 'passed' : 'failed'] += 1;
    if (code !== 0) failures.push(`${suite.name}: ${command.join(' ')}`);
    console.log(`${output}  ${code === 0 ? 'ok  ' : 'FAIL'} ${command.join(' ')}`);
  }
  if (suite.tap) await bundleAva(folder);
  const commands = suite.isBounded && withinMs !== undefined ? drawBatches(suite) : suite.commands;
  for (const command of suite.tap ? commands : []) {
    if (withinMs !== undefined && performance.now() - startedMs > withinMs && suite.isBounded) {
      totals.skipped += skipFiles(filesOf(command));
      continue;
    }
    const first = await runTap(suite.name, command, folder, suite.env?.());
    const counted = suite.isJudgedAlone === true ? await judgedAlone(suite, first, folder) : first;
    totals.passed += counted.passed;
    totals.failed += counted.failed;
    totals.skipped += counted.skipped;
  }
  if (suite.tap && totals.passed === 0) {
    failures.push(`${suite.name}: no test passed`);
    console.log(`  FAIL ${suite.name}: no test passed; a suite that runs nothing proves nothing`);
    totals.failed += 1;
  }
  for (const line of renderCosts(parseCosts(readFileSync(join(folder, COSTS), 'utf8')), ROOT)) console.log(line);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(
    `== ${suite.name}: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped, ${seconds} s`,
  );
  return totals;
}

/** Splits the commands of a suite, and mixes them: where time ends, each kind has run some of its files. */
function drawBatches({ commands }: Suite): readonly (readonly string[])[] {
  const order = givenOrNewOrder();
  console.log(`order ${order} (ORDER=${order} repeats it)`);
  const chance = seededRandom(order);
  return commands
    .flatMap((command) => splitCommand(command, chance))
    .map((command) => ({ command, at: chance() }))
    .sort((a, b) => a.at - b.at)
    .map(({ command }) => command);
}

/** The order of files is of no test: a new one each time, so that none is left out each time. */
function givenOrNewOrder(): number {
  return readSeed(process.env['ORDER'] || 'random');
}

/** Prints the files that there was no time for; returns their number. */
function skipFiles(files: readonly string[]): number {
  for (const file of files) console.log(`  skip ${file}: the minutes of --within are over`);
  return files.length;
}

/** Runs the files of a command that failed once more, each alone; returns what the command then counts. */
async function judgedAlone(suite: Suite, first: TapTotals, folder: string): Promise<TapTotals> {
  const own = failures.slice(failures.length - first.failed);
  const titles = own.map((failure) => failure.slice(`${suite.name}: `.length));
  const ran = parseCosts(readFileSync(join(folder, COSTS), 'utf8')).map(({ file }) => fileURLToPath(file));
  const files = failedFiles(titles, ran);
  if (first.failed === 0 || files === undefined || files.length > MAX_ALONE) return first;
  // Divided into batches, a suite forgives no more than as a whole.
  if (unsteady.length + files.length > MAX_ALONE * suite.commands.length) return first;
  failures.splice(failures.length - first.failed);
  let failed = 0;
  for (const file of files) {
    console.log(`  once more, alone: ${file.replace(fileURLToPath(ROOT), '')}`);
    const again = await runTap(suite.name, ['ava', '--tap', SERIAL, '--timeout=30m', file], folder, suite.env?.());
    failed += again.failed;
    if (again.failed === 0) unsteady.push(file.replace(fileURLToPath(ROOT), ''));
  }
  return { ...first, passed: first.passed + Math.max(0, first.failed - failed), failed };
}

/** Says why a suite is not run, and counts it as skipped. */
function skipSuite(name: string): TapTotals {
  const assets = findKubeAssets();
  const reason =
    name === 'cluster' && assets.missing.length > 0
      ? describeMissing(assets)
      : `it takes long: run tools/run-tests.ts ${name}`;
  console.log(`== ${name}\n  skip ${name}: ${reason}\n== ${name}: 0 passed, 0 failed, 1 skipped, 0.0 s`);
  return { passed: 0, failed: 0, skipped: 1 };
}

if (import.meta.main) {
  const words = process.argv.slice(2);
  const skipped = words.filter((word) => word.startsWith('--without=')).map((word) => word.slice('--without='.length));
  const minutes = words.find((word) => word.startsWith('--within='))?.slice('--within='.length);
  if (minutes !== undefined && !/^[1-9][0-9]*$/.test(minutes)) {
    console.error(`--within takes a whole number of minutes from 1, not "${minutes}"`);
    process.exit(2);
  }
  if (minutes !== undefined) withinMs = Number(minutes) * 60_000;
  const wanted = words.filter((word) => !word.startsWith('--with'));
  const unknown = [...wanted, ...skipped].filter((name) => !SUITES.some((suite) => suite.name === name));
  if (unknown.length > 0) {
    console.error(`no such suite: ${unknown.join(', ')}; known are ${SUITES.map((suite) => suite.name).join(', ')}`);
    process.exit(2);
  }
  // What a shell exports is for one file: each suite says which part it runs.
  delete process.env[PART_VARIABLE];
  // Drawn once for all processes of this run.
  const seed = readSeed(process.env['SEED']);
  process.env['SEED'] = String(seed);
  console.log(`seed ${seed} (SEED=${seed} repeats it)`);
  if (process.getuid?.() !== 0 && wanted.some((name) => ROOT_ONLY.includes(name))) {
    console.error(
      'kernel, e2e and cluster make network namespaces and start containers: run make as root (sudo make test)',
    );
    process.exit(2);
  }
  const assets = findKubeAssets();
  if (wanted.includes('cluster') && assets.missing.length > 0) {
    console.error(`cluster: ${describeMissing(assets)}`);
    process.exit(2);
  }
  // The usual folder needs no variable; the tests of the API server alone know only the variable.
  if (wanted.includes('cluster')) process.env['KUBE_ASSETS'] = assets.dir;
  // Once for all, rather than by each test file: to see that nothing changed takes as long as to bundle.
  if (wanted.some((name) => ROOT_ONLY.includes(name))) {
    await buildAll((line) => console.log(line));
    process.env[BUILT_VARIABLE] = '1';
  }
  const all: TapTotals[] = [];
  for (const suite of SUITES.filter((candidate) => wanted.includes(candidate.name))) all.push(await runSuite(suite));
  all.push(...skipped.map(skipSuite));
  const sum = (pick: (totals: TapTotals) => number) => all.reduce((total, one) => total + pick(one), 0);
  const failed = sum((one) => one.failed);
  for (const file of unsteady) console.log(`UNSTEADY ${file}: failed beside others, passed alone`);
  for (const failure of failures) console.log(`FAILED ${failure}`);
  console.log(
    `${sum((one) => one.passed)} passed, ${failed} failed, ${sum((one) => one.skipped)} skipped, seed ${seed}`,
  );
  process.exitCode = failed === 0 ? 0 : 1;
}
