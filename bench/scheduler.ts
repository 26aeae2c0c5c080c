import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child } from '../test/support/child.ts';
import { waitUntil } from '../test/support/wait-until.ts';
import { type BenchRow, benchRow, median } from './row.ts';
import { CHANGES_PER_SECOND, newPodAt, nodeName, WORLD } from './scheduler/world.ts';

const EXTENDER = join(import.meta.dirname, 'scheduler', 'extender-main.ts');
const WARM_UP = 300;
const PODS = 3_000;
/** What a Pod may cost kube-scheduler, which asks for one after the other. */
const BOUND_MS = 10;
const AT_ONCE = 8;

/**
 * Measures the scheduler extender as a process of its own: for each Pod filter over all nodes, then prioritize over those
 * that fit, both over HTTP with names only, while the cluster changes.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const child = new Child([process.execPath, EXTENDER]);
  try {
    const { address, sizes } = await waitUntil(() => listening(child), {
      what: 'the extender answers',
      timeoutMs: 180_000,
      everyMs: 100,
      explain: () => child.stderr,
    });
    const caller = new Caller(address);
    for (let serial = 0; serial < WARM_UP; serial++) await askFor(caller, serial);
    const times: number[] = [];
    const fits: number[] = [];
    for (let serial = 0; serial < PODS; serial++) {
      const { ms, fitting } = await askFor(caller, WARM_UP + serial);
      times.push(ms);
      fits.push(fitting);
      // kube-scheduler has work of its own between two Pods.
      if (serial % 50 === 0) await sleep(1);
    }
    const perSecond = await throughput(caller);
    const rssMib = residentMib(child.pid);
    caller.close();
    return [rowOf(times, { perSecond, rssMib, fitting: median(fits), sizes })];
  } finally {
    await child.stop();
  }
}

type Report = {
  readonly perSecond: number;
  readonly rssMib: number;
  readonly fitting: number;
  readonly sizes: Readonly<Record<string, number>>;
};

function rowOf(times: readonly number[], { perSecond, rssMib, fitting, sizes }: Report): BenchRow {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  const addresses = WORLD.nodes * WORLD.addressesPerNode;
  return benchRow({
    suite: 'scheduler',
    case: 'filter-5000',
    ours: at(0.99),
    peer: BOUND_MS,
    peerName: 'bound',
    unit: 'ms',
    extra: `p99 of filter and prioritize for a Pod, over HTTP with names only, ${times.length} Pods one after the other: p50 ${at(0.5).toFixed(1)} ms, most ${at(1).toFixed(1)} ms; ${WORLD.nodes} nodes (${fitting} fit), ${addresses} addresses, ${sizes['pods']} Pods and ${sizes['claims']} kept addresses in the index, ${CHANGES_PER_SECOND} changes/s; ${perSecond.toFixed(0)} requests/s from ${AT_ONCE} clients; ${rssMib.toFixed(0)} MiB`,
  });
}

const NAMES = Array.from({ length: WORLD.nodes }, (_, index) => nodeName(index));

async function askFor(caller: Caller, serial: number): Promise<{ readonly ms: number; readonly fitting: number }> {
  const Pod = newPodAt(serial);
  const question = JSON.stringify({ Pod, Nodes: null, NodeNames: NAMES });
  const startedMs = performance.now();
  const filtered = await caller.post('/filter', question);
  const filterMs = performance.now() - startedMs;
  const { NodeNames } = JSON.parse(filtered) as { readonly NodeNames: readonly string[] };
  if (NodeNames.length === 0) throw new Error(`no node fits: ${filtered.slice(0, 500)}`);
  const scored = JSON.stringify({ Pod, Nodes: null, NodeNames });
  const againMs = performance.now();
  await caller.post('/prioritize', scored);
  return { ms: filterMs + performance.now() - againMs, fitting: NodeNames.length };
}

async function throughput(caller: Caller): Promise<number> {
  const each = 100;
  const startedMs = performance.now();
  const clients = Array.from({ length: AT_ONCE }, async (_, client) => {
    for (let serial = 0; serial < each; serial++) await askFor(caller, PODS + client * each + serial);
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

  /** Sends a text and returns the answer's. @throws Error unless it was 200 */
  async post(path: string, text: string): Promise<string> {
    const body = Buffer.from(text);
    return await new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': body.length };
      const options = { host: this.#host, port: this.#port, path, method: 'POST', agent: this.#agent, headers };
      const sent = request(options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('end', () => {
          const answer = Buffer.concat(chunks).toString('utf8');
          if (response.statusCode === 200) resolve(answer);
          else reject(new Error(`${path}: ${response.statusCode} ${answer}`));
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
