/**
 * `node test/soak/main.ts [--seed N] [--adds N] [--seconds N] [--fast-path bpf] [--keep]`: tens of thousands of Pods come and go on a whole
 * system that is thrown about, then cloud, objects and kernels are compared. Exit code 1 when anything is wrong.
 * Without `--seed` the seed is that of the variable SEED, else a new one. `--keep` keeps the evidence of a run that
 * passed too.
 */
import { parseArgs } from 'node:util';
import { givenOrNewSeed } from '../../sim/support/seed.ts';
import { type RunningSoak, runSoak } from './run-soak.ts';

const DEFAULT_ADDS = 14_000;
/** Of the load alone; start, audits and end come on top and fit into eight minutes with it. */
const DEFAULT_SECONDS = 300;
/** No run is longer than this, whatever hangs. */
const WALL_MS = 450_000;
const BESIDE_LOAD_MS = WALL_MS - DEFAULT_SECONDS * 1_000;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    adds: { type: 'string' },
    seconds: { type: 'string' },
    'fast-path': { type: 'string' },
    keep: { type: 'boolean' },
  },
});
const spec = {
  seed: numberOf('seed', values.seed, givenOrNewSeed()),
  adds: numberOf('adds', values.adds, DEFAULT_ADDS),
  lastsMs: numberOf('seconds', values.seconds, DEFAULT_SECONDS) * 1_000,
  fastPath: values['fast-path'] ?? 'off',
  keepsEvidence: values.keep === true,
};
if (process.getuid?.() !== 0) {
  process.stderr.write('soak makes network namespaces: run it as root (sudo make soak)\n');
  process.exit(2);
}

const running: RunningSoak = { soak: undefined, system: undefined };
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void leave(130));
const wall = setTimeout(() => {
  print(
    `FAILED: not done after ${(spec.lastsMs + BESIDE_LOAD_MS) / 1_000} s. ${running.soak?.tally.violations.join('\n') ?? ''}`,
  );
  void leave(1);
}, spec.lastsMs + BESIDE_LOAD_MS);

print(`soak: seed ${spec.seed} (make soak-alone SOAK="--seed ${spec.seed}" repeats its choices)`);
const startMs = performance.now();
try {
  const isWell = await runSoak(spec, running, print);
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  print(`soak: ${isWell ? 'passed' : 'FAILED'}, seed ${spec.seed}, ${seconds} s`);
  await leave(isWell ? 0 : 1);
} catch (error) {
  print(`soak: FAILED, seed ${spec.seed}: ${error instanceof Error ? error.stack : String(error)}`);
  await leave(1);
}

/** Ends every process and removes every namespace first. */
async function leave(code: number): Promise<never> {
  clearTimeout(wall);
  if (running.soak !== undefined) running.soak.isAborted = true;
  await running.system?.close();
  process.exit(code);
}

function numberOf(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  process.stderr.write(`--${name}: expected a whole number above 0, got ${text}\n`);
  process.exit(2);
}
