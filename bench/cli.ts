import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildExecutables } from '../tools/build.ts';
import { type BenchRow, benchRow, median } from './row.ts';

const ROUTES = 10_000;
const VETHS = 250;
const TABLE = 3999;
const ROUNDS = 30;
const WARM_UP_ROUNDS = 3;

/**
 * Measures a dump of 10,000 routes, as JSON, by whole processes: the packaged `tke-eni` and `ip`, in turn. A node of 250 Pods
 * has 250 links; the routes are many more than it would ever have.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const { binDir } = await buildExecutables(['tke-eni']);
  const folder = mkdtempSync(join(tmpdir(), 'tke-bench-'));
  const netns = `tke-bench-${randomBytes(4).toString('hex')}`;
  try {
    execFileSync('ip', ['netns', 'add', netns]);
    execFileSync('ip', ['-n', netns, '-batch', '-'], { input: bedLines().join('\n') });
    return rowsOf(await measure(folder, netns, join(binDir, 'tke-eni')));
  } finally {
    execFileSync('ip', ['netns', 'del', netns]);
    rmSync(folder, { recursive: true, force: true });
  }
}

function bedLines(): readonly string[] {
  const nameOf = (index: number) => `eni${index.toString(16).padStart(11, '0')}`;
  const veths = Array.from({ length: VETHS }, (_, index) => [
    `link add ${nameOf(index)} type veth peer name peer${index}`,
    `link set ${nameOf(index)} up`,
    `link set peer${index} up`,
  ]);
  const routes = Array.from({ length: ROUTES }, (_, index) => {
    const dst = `10.1.${index >> 8}.${index & 255}/32`;
    return `route add ${dst} dev ${nameOf(index % VETHS)} table ${TABLE} proto 84`;
  });
  return [...veths.flat(), ...routes];
}

type Sample = { readonly name: string; readonly wallMs: number; readonly cpuMs: number };

/** A shell takes the times: its fork costs both the same, and it reads the kernel's account of each child. */
async function measure(folder: string, netns: string, ours: string): Promise<readonly Sample[]> {
  const script = `
    TIMEFORMAT='%U %S'
    one() {
      local name=$1 from=$EPOCHREALTIME cpu to; shift
      { cpu=$( { time "$@" > "$out.$name" 2>&3; } 2>&1 ) ; } 3>&2 || exit 1
      to=$EPOCHREALTIME
      echo "$name $from $to $cpu"
    }
    for ((n = 0; n < rounds; n++)); do
      one ours "$ours" --netns "$netns" routes --table ${TABLE} -o json
      one ip ip -n "$netns" -j route show table ${TABLE}
      one oursEmpty "$ours" --netns "$netns" routes --family 4 --table main -o json
      one ipEmpty ip -n "$netns" -4 -j route show table main
      one version "$ours" version
    done`;
  const env = { PATH: process.env['PATH'], LC_ALL: 'C', out: join(folder, 'out'), ours, netns };
  const rounds = { rounds: String(ROUNDS + WARM_UP_ROUNDS) };
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], { env: { ...env, ...rounds } });
  const [mine, theirs] = ['ours', 'ip'].map((name) => JSON.parse(readFileSync(join(folder, `out.${name}`), 'utf8')));
  if (JSON.stringify(mine) !== JSON.stringify(theirs)) throw new Error('tke-eni and ip do not print the same routes');
  const samples = stdout
    .trim()
    .split('\n')
    .map((line): Sample => {
      const [name = '', from, to, user, system] = line.split(' ');
      return { name, wallMs: (Number(to) - Number(from)) * 1000, cpuMs: (Number(user) + Number(system)) * 1000 };
    });
  return samples.slice(5 * WARM_UP_ROUNDS);
}

function rowsOf(samples: readonly Sample[]): readonly BenchRow[] {
  const of = (name: string, pick: (sample: Sample) => number) =>
    median(samples.filter((sample) => sample.name === name).map(pick));
  const row = (name: string, pick: (sample: Sample) => number, what: string): readonly BenchRow[] => {
    const [ours, ip, oursEmpty, ipEmpty, version] = [
      of('ours', pick),
      of('ip', pick),
      of('oursEmpty', pick),
      of('ipEmpty', pick),
      of('version', pick),
    ];
    const common = { suite: 'cli', peerName: 'ip -j route', unit: 'ms' } as const;
    const starts = `an empty table takes ${oursEmpty.toFixed(1)} against ${ipEmpty.toFixed(1)} ms, tke-eni version ${version.toFixed(1)} ms`;
    return [
      benchRow({
        ...common,
        case: `routes-10000${name}`,
        ours,
        peer: ip,
        extra: `${what} of whole processes, ${VETHS} veths; ${starts}; ${ROUNDS} rounds, interleaved`,
      }),
      benchRow({
        ...common,
        case: `routes-10000-work${name}`,
        ours: ours - oursEmpty,
        peer: ip - ipEmpty,
        extra: `${what} beyond that of the same command for an empty table: reading and printing alone`,
      }),
    ];
  };
  return [...row('', ({ wallMs }) => wallMs, 'wall time'), ...row('-cpu', ({ cpuMs }) => cpuMs, 'CPU time')];
}
