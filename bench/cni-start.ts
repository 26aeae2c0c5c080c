import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeExecutable } from '../tools/build/executable.ts';
import { buildExecutables, findNode } from '../tools/build.ts';
import { type BenchRow, benchRow, median } from './row.ts';

/**
 * Measures what an ADD costs before the agent does anything: process, conf, one call to a warm agent, result. The peer
 * is an empty program packaged the same way: the floor that no Node executable gets under.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tke-bench-'));
  const socket = join(folder, 'agent.sock');
  const agent = spawn(process.execPath, [join(import.meta.dirname, 'support', 'fake-agent.ts'), socket], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    await once(agent.stdout, 'data');
    const [ours, peer] = await buildBoth();
    const samples = await measure(folder, socket, ours, peer);
    const row = (name: string, pick: (sample: Sample) => number, of: string) =>
      benchRow({
        suite: 'cni',
        case: name,
        ours: median(samples.filter((sample) => sample.name === 'ours').map(pick)),
        peer: median(samples.filter((sample) => sample.name === 'peer').map(pick)),
        peerName: 'empty SEA Node program',
        unit: 'ms',
        extra: `${of} of a full ADD against a warm agent that wires nothing; ${ROUNDS} rounds, interleaved`,
      });
    return [row('start', ({ wallMs }) => wallMs, 'wall time'), row('start-cpu', ({ cpuMs }) => cpuMs, 'CPU time')];
  } finally {
    agent.stdin.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

const ROUNDS = 60;
const WARM_UP_ROUNDS = 10;

type Sample = { readonly name: string; readonly wallMs: number; readonly cpuMs: number };

async function buildBoth(): Promise<readonly [ours: string, peer: string]> {
  const { binDir } = await buildExecutables(['tke-route-eni']);
  const dist = join(binDir, '..');
  const place = { binDir: join(dist, 'bench'), cacheDir: join(dist, '.cache'), nodePath: findNode() };
  await makeExecutable({ name: 'empty', links: [], code: '' }, place);
  return [join(binDir, 'tke-route-eni'), join(place.binDir, 'empty')];
}

/**
 * Lets a shell take the times: it is small, so its fork costs both the same half millisecond, and it reads the kernel's
 * account of each child.
 */
async function measure(folder: string, socket: string, ours: string, peer: string): Promise<readonly Sample[]> {
  const conf = join(folder, 'conf.json');
  writeFileSync(
    conf,
    JSON.stringify({ cniVersion: '1.0.0', name: 'bench', type: 'tke-route-eni', backend: `unix:${socket}` }),
  );
  const script = `
    TIMEFORMAT='%U %S'
    one() {
      local name=$1 from=$EPOCHREALTIME cpu; shift
      { cpu=$( { time "$@" < "$conf" > "$out" 2>&3; } 2>&1 ) ; } 3>&2 || exit 1
      echo "$name $from $EPOCHREALTIME $cpu"
    }
    for ((n = 0; n < rounds; n++)); do
      CNI_CONTAINERID=c$n one ours "$ours"
      grep -q '"address"' "$out" || { cat "$out" >&2; exit 1; }
      one peer "$peer"
    done`;
  const env = {
    PATH: process.env['PATH'],
    LC_ALL: 'C',
    CNI_COMMAND: 'ADD',
    CNI_CONTAINERID: 'c',
    CNI_NETNS: '/run/netns/bench',
    CNI_IFNAME: 'eth0',
    CNI_ARGS: 'K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0',
    conf,
    out: join(folder, 'out'),
    ours,
    peer,
    rounds: String(ROUNDS + WARM_UP_ROUNDS),
  };
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], { env });
  const samples = stdout
    .trim()
    .split('\n')
    .map((line) => {
      const [name = '', from, to, user, system] = line.split(' ');
      return { name, wallMs: (Number(to) - Number(from)) * 1000, cpuMs: (Number(user) + Number(system)) * 1000 };
    });
  return samples.slice(2 * WARM_UP_ROUNDS);
}
