import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child } from '../sim/support/child.ts';
import { waitUntil } from '../test/support/wait-until.ts';
import { bundle } from '../tools/build/bundle.ts';
import { EXECUTABLES } from '../tools/build.ts';
import { type BenchRow, benchRow, median } from './row.ts';
import { CHANGES_PER_SECOND, newPodAt, nodeName, WORLD } from './scheduler/world.ts';

const ROOT = join(import.meta.dirname, '..');
const EXTENDER = 'bench/scheduler/extender-main.ts';
const WARM_UP = 300;
const ROUNDS = 7;
const PODS = 600;
/** What a Pod may cost kube-scheduler, which asks for one after the other. */
const BOUND_MS = 10;
const AT_ONCE = 8;

/**
 * Measures the scheduler extender as a process of its own: for each Pod filter over all nodes, then prioritize over those
 * that fit, both over HTTP with names only, while the cluster changes.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  // One file, as the packaged extender: what Node needs to run TypeScript, 50 MiB, is none of the extender's memory.
  const folder = mkdtempSync(join(tmpdir(), 'tke-bench-'));
  const { code } = await bundle(ROOT, EXTENDER, 'bench', EXECUTABLES['tke-eni-ip-scheduler'].compile);
  writeFileSync(join(folder, 'extender.cjs'), code);
  const flags = EXECUTABLES['tke-eni-ip-scheduler'].execArgv;
  const child = new Child([process.execPath, ...flags, join(folder, 'extender.cjs')]);
  try {
    const { address, sizes } = await waitUntil(() => listening(child), {
      what: 'the extender answers',
      timeoutMs: 180_000,
      everyMs: 100,
      explain: () => child.stderr,
    });
    const caller = new Caller(address);
    for (let serial = 0; serial < WARM_UP; serial++) await askFor(caller, serial);
    const rounds: Round[] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await measureRound(caller, WARM_UP + round * PODS));
    const perSecond = await throughput(caller);
    const rssMib = residentMib(child.pid);
    caller.close();
    return [rowOf(rounds, { perSecond, rssMib, sizes })];
  } finally {
    await child.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Round = { readonly p50: number; readonly p99: number; readonly most: number; readonly fitting: number };

async function measureRound(caller: Caller, from: number): Promise<Round> {
  const asked: Awaited<ReturnType<typeof askFor>>[] = [];
  for (let serial = 0; serial < PODS; serial++) {
    asked.push(await askFor(caller, from + serial));
    // kube-scheduler has work of its own between two Pods.
    if (serial % 50 === 0) await sleep(1);
  }
  const sorted = asked.map(({ ms }) => ms).sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), most: at(1), fitting: median(asked.map(({ fitting }) => fitting)) };
}

type Report = {
  readonly perSecond: number;
  readonly rssMib: number;
  readonly sizes: Readonly<Record<string, number>>;
};

function rowOf(rounds: readonly Round[], { perSecond, rssMib, sizes }: Report): BenchRow {
  const p99s = rounds.map(({ p99 }) => p99);
  const p50 = median(rounds.map((round) => round.p50));
  const fitting = median(rounds.map((round) => round.fitting));
  const spread = `${Math.min(...p99s).toFixed(1)} to ${Math.max(...p99s).toFixed(1)} ms`;
  const asked = `${ROUNDS} rounds of ${PODS} Pods, one after the other, a quarter with a kept address`;
  const index = `${WORLD.nodes} nodes (${fitting} fit a Pod without), ${WORLD.nodes * WORLD.addressesPerNode} addresses, ${sizes['pods']} Pods, ${sizes['claims']} kept addresses`;
  return benchRow({
    suite: 'scheduler',
    case: 'filter-5000',
    ours: median(p99s),
    peer: BOUND_MS,
    peerName: 'bound',
    unit: 'ms',
    extra: `p99 of filter and prioritize for a Pod, over HTTP with names only; ${asked}: p50 ${p50.toFixed(1)} ms, p99 ${spread}; ${index} in the index, ${CHANGES_PER_SECOND} changes/s; ${perSecond.toFixed(0)} requests/s from ${AT_ONCE} clients; ${rssMib.toFixed(0)} MiB`,
  });
}

const NAMES = JSON.stringify(Array.from({ length: WORLD.nodes }, (_, index) => nodeName(index)));
const OF_NAMES = /"NodeNames":(\[[^\]]*\])/;

/** The names are handed on as text: what this process would parse and collect is none of the extender's time. */
async function askFor(caller: Caller, serial: number): Promise<{ readonly ms: number; readonly fitting: number }> {
  const pod = JSON.stringify(newPodAt(serial));
  const question = `{"Pod":${pod},"Nodes":null,"NodeNames":${NAMES}}`;
  const startedMs = performance.now();
  const filtered = await caller.post('/filter', question);
  const filterMs = performance.now() - startedMs;
  const names = OF_NAMES.exec(filtered.toString('latin1'))?.[1] ?? '[]';
  if (names === '[]') throw new Error(`no node fits: ${filtered.toString('utf8', 0, 500)}`);
  const scored = `{"Pod":${pod},"Nodes":null,"NodeNames":${names}}`;
  const againMs = performance.now();
  await caller.post('/prioritize', scored);
  return { ms: filterMs + performance.now() - againMs, fitting: names.split(',').length };
}

async function throughput(caller: Caller): Promise<number> {
  const each = 100;
  const startedMs = performance.now();
  const clients = Array.from({ length: AT_ONCE }, async (_, client) => {
    for (let serial = 0; serial < each; serial++) await askFor(caller, ROUNDS * PODS + client * each + serial);
  });
  await Promise.all(clients);
  return (AT_ONCE * each * 2) / ((performance.now() - startedMs) / 1000);
}

/** Keeps connections, as kube-scheduler does. */
class Caller {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  readonly #host: string;
  readonly #port: number;

  constructor(address: string) {
    const [host = '', port = ''] = address.split(':');
    this.#host = host;
    this.#port = Number(port);
  }

  /** Sends a text and returns the answer. @throws Error unless it was 200 */
  async post(path: string, text: string): Promise<Buffer> {
    const body = Buffer.from(text);
    return await new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': body.length };
      const options = { host: this.#host, port: this.#port, path, method: 'POST', agent: this.#agent, headers };
      const sent = request(options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('end', () => {
          const answer = Buffer.concat(chunks);
          if (response.statusCode === 200) resolve(answer);
          else reject(new Error(`${path}: ${response.statusCode} ${answer.toString('utf8', 0, 500)}`));
        });
      });
      sent.once('error', reject);
      sent.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

type Listening = { readonly address: string; readonly sizes: Readonly<Record<string, number>> };

function listening(child: Child): Listening | undefined {
  const [line] = child.stdout.split('\n');
  // Our own process prints this one line.
  return child.stdout.includes('\n') && line !== undefined ? (JSON.parse(line) as Listening) : undefined;
}

function residentMib(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024;
}
