import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { renderKubeconfig } from '../sim/kube-api/kubeconfig.ts';
import { Child } from '../sim/support/child.ts';
import { childEnv } from '../sim/support/child-env.ts';
import { executablePath } from '../test/support/executables.ts';
import { freePort } from '../test/support/free-port.ts';
import { createTempDir } from '../test/support/temp-dir.ts';
import { waitUntil } from '../test/support/wait-until.ts';
import { type BenchRow, benchRow, median } from './row.ts';
import { CHANGES_PER_SECOND, newPodAt, nodeName, WORLD } from './scheduler/world.ts';
import { readProcessCpu } from './support/process-cpu.ts';
import { readStatusMib } from './support/process-memory.ts';

/** Processes that are measured one after the other: the memory of one depends on when its heap was collected. */
const PROCESSES = 3;
const WARM_UP = 300;
const ROUNDS = 5;
const PODS = 600;
/** What a Pod may cost kube-scheduler, which asks for one after the other. */
const BOUND_MS = 10;
const RSS_BOUND_MIB = 300;
const AT_ONCE = 8;

/**
 * Measures the packaged scheduler extender: for each Pod filter over all nodes, then prioritize over those that fit, both
 * over HTTP with names only, while the cluster changes. Its API server is a process of its own.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const reports: Report[] = [];
  for (let serial = 0; serial < PROCESSES; serial++) reports.push(await measureProcess());
  return rowsOf(reports);
}

async function measureProcess(): Promise<Report> {
  await using undo = new AsyncDisposableStack();
  const dir = undo.adopt(createTempDir('bench-scheduler'), (one) => one.close()).path;
  const started = (argv: readonly string[]): Child =>
    undo.adopt(new Child(argv, { env: childEnv() }), async (child) => void (await child.stop()));
  const api = started([process.execPath, 'bench/scheduler/api-main.ts']);
  const port = await waitUntil(() => /"port":(\d+)/.exec(api.stdout)?.[1], {
    ...{ what: 'the API server', timeoutMs: 60_000, everyMs: 50 },
    explain: () => api.stderr,
  });
  writeFileSync(join(dir, 'kubeconfig'), renderKubeconfig({ url: `http://127.0.0.1:${port}` }));
  const [address, metrics] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const extender = started([
    executablePath('tke-eni-ip-scheduler'),
    ...[`--kubeconfig=${join(dir, 'kubeconfig')}`, `--listen-address=${address}`, `--metrics-address=${metrics}`],
    ...['--allow-anonymous-loopback', '--leader-elect=false', '--filter-wait=0s'],
  ]);
  const isReady = async (): Promise<true | undefined> => {
    if (!extender.isRunning) throw new Error(`the extender ended: ${extender.stderr.slice(-2_000)}`);
    const answer = await fetch(`http://${metrics}/readyz`).catch(() => undefined);
    return answer?.ok === true ? true : undefined;
  };
  const startedMs = performance.now();
  await waitUntil(isReady, {
    ...{ what: 'the extender is ready', timeoutMs: 180_000, everyMs: 200 },
    explain: () => `${extender.stdout.slice(-2_000)}${extender.stderr.slice(-2_000)}`,
  });
  const startSeconds = (performance.now() - startedMs) / 1000;
  const caller = new Caller(address);
  const rounds: Round[] = [];
  const rss: number[] = [readStatusMib(extender.pid, 'VmRSS')];
  const scratch = new Scratch();
  for (let serial = 0; serial < WARM_UP; serial++) await askFor(caller, serial, scratch);
  const { ownS } = readProcessCpu(extender.pid);
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push(await measureRound(caller, WARM_UP + round * PODS, scratch));
    rss.push(readStatusMib(extender.pid, 'VmRSS'));
  }
  const cpuMs = ((readProcessCpu(extender.pid).ownS - ownS) * 1000) / (ROUNDS * PODS);
  const perSecond = await throughput(caller);
  rss.push(readStatusMib(extender.pid, 'VmRSS'));
  caller.close();
  return {
    rounds,
    perSecond,
    cpuMs,
    startSeconds,
    rssMib: Math.max(...rss),
    peakMib: readStatusMib(extender.pid, 'VmHWM'),
  };
}

/** `noiseP99`: of requests that ask nothing, between the others. What it is above nothing is the machine's. */
type Round = { readonly p50: number; readonly p99: number; readonly noiseP99: number; readonly fitting: number };

async function measureRound(caller: Caller, from: number, scratch: Scratch): Promise<Round> {
  const asked: Awaited<ReturnType<typeof askFor>>[] = [];
  const noise: number[] = [];
  for (let serial = 0; serial < PODS; serial++) {
    asked.push(await askFor(caller, from + serial, scratch));
    const startedMs = performance.now();
    await caller.post('/prioritize', [NOTHING], scratch.prioritize);
    noise.push(performance.now() - startedMs);
    // kube-scheduler has work of its own between two Pods.
    if (serial % 50 === 0) await sleep(1);
  }
  const at = (values: readonly number[], share: number): number =>
    values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))] ?? 0;
  const ms = asked.map((one) => one.ms);
  const fitting = median(asked.map((one) => one.fitting));
  return { p50: at(ms, 0.5), p99: at(ms, 0.99), noiseP99: at(noise, 0.99), fitting };
}

/** Of one process. */
type Report = {
  readonly rounds: readonly Round[];
  readonly perSecond: number;
  /** CPU time for a Pod, with the changes that come meanwhile. */
  readonly cpuMs: number;
  readonly startSeconds: number;
  /** The most of the readings while it answered. */
  readonly rssMib: number;
  /** The peak, with the start. */
  readonly peakMib: number;
};

function rowsOf(reports: readonly Report[]): readonly BenchRow[] {
  const rounds = reports.flatMap((one) => one.rounds);
  const p99s = rounds.map(({ p99 }) => p99);
  const noise = rounds.map(({ noiseP99 }) => noiseP99);
  const medianOf = (name: Exclude<keyof Report, 'rounds'>): number => median(reports.map((one) => one[name]));
  const p50 = median(rounds.map((round) => round.p50));
  const fitting = median(rounds.map((round) => round.fitting));
  const asked = `${PROCESSES} packaged processes, ${ROUNDS} rounds of ${PODS} Pods each, one after the other, a quarter with a kept address`;
  const index = `${WORLD.nodes} nodes (${fitting} fit a Pod without), ${WORLD.nodes * WORLD.addressesPerNode} addresses, ${WORLD.nodes * WORLD.podsPerNode} Pods, ${WORLD.claims} kept addresses in the index, ${CHANGES_PER_SECOND} changes/s`;
  const row = (name: string, ours: number, peer: number, unit: 'ms' | 'MiB', extra: string): BenchRow =>
    benchRow({ suite: 'scheduler', case: name, ours, peer, peerName: 'bound', unit, extra });
  return [
    row(
      'filter-5000',
      median(p99s),
      BOUND_MS,
      'ms',
      `p99 of filter and prioritize for a Pod, over HTTP with names only; ${asked}: p50 ${p50.toFixed(1)} ms, p99 of a round ${spreadOf(p99s, 1)} ms, of requests that ask nothing ${spreadOf(noise, 1)} ms; CPU ${medianOf('cpuMs').toFixed(1)} ms a Pod; ${index}; ${medianOf('perSecond').toFixed(0)} requests/s from ${AT_ONCE} clients`,
    ),
    row(
      'rss-5000',
      Math.max(...reports.map(({ rssMib }) => rssMib)),
      RSS_BOUND_MIB,
      'MiB',
      `most VmRSS of the packaged process while it answered: ${spreadOf(
        reports.map(({ rssMib }) => rssMib),
        0,
      )} MiB in ${PROCESSES} processes; peak with the start ${spreadOf(
        reports.map(({ peakMib }) => peakMib),
        0,
      )} MiB; ready after ${medianOf('startSeconds').toFixed(0)} s`,
    ),
  ];
}

function spreadOf(values: readonly number[], digits: number): string {
  const [least, middle, most] = [Math.min(...values), median(values), Math.max(...values)];
  return `min ${least.toFixed(digits)}, median ${middle.toFixed(digits)}, max ${most.toFixed(digits)}`;
}

const NAMES = Buffer.from(JSON.stringify(Array.from({ length: WORLD.nodes }, (_, index) => nodeName(index))));
const KEY = '"NodeNames":';
/** More than an answer takes in which every node is refused with a reason. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/** Buffers that one client reads its answers into, again and again. */
class Scratch {
  readonly filter = Buffer.alloc(ANSWER_BYTES);
  readonly prioritize = Buffer.alloc(ANSWER_BYTES);
}

/** The names are handed on as bytes: what this process would parse and collect is none of the extender's time. */
async function askFor(
  caller: Caller,
  serial: number,
  scratch: Scratch,
): Promise<{ readonly ms: number; readonly fitting: number }> {
  const head = Buffer.from(`{"Pod":${JSON.stringify(newPodAt(serial))},"Nodes":null,${KEY}`);
  const startedMs = performance.now();
  const filtered = await caller.post('/filter', [head, NAMES, END], scratch.filter);
  const filterMs = performance.now() - startedMs;
  const from = filtered.indexOf(KEY) + KEY.length;
  const names = filtered.subarray(from, filtered.indexOf(']', from) + 1);
  if (names.length <= '[]'.length || names[0] !== '['.charCodeAt(0))
    throw new Error(`no node fits: ${filtered.toString('utf8', 0, 500)}`);
  const againMs = performance.now();
  await caller.post('/prioritize', [head, names, END], scratch.prioritize);
  const ms = filterMs + performance.now() - againMs;
  return { ms, fitting: 1 + names.reduce((sum, byte) => sum + (byte === COMMA ? 1 : 0), 0) };
}

const END = Buffer.from('}');
const NOTHING = Buffer.from(
  '{"Pod":{"metadata":{"namespace":"default","name":"none","uid":"none"}},"Nodes":null,"NodeNames":[]}',
);
const COMMA = ','.charCodeAt(0);

async function throughput(caller: Caller): Promise<number> {
  const each = 100;
  const startedMs = performance.now();
  const clients = Array.from({ length: AT_ONCE }, async (_, client) => {
    const scratch = new Scratch();
    for (let serial = 0; serial < each; serial++) await askFor(caller, ROUNDS * PODS + client * each + serial, scratch);
  });
  await Promise.all(clients);
  return (AT_ONCE * each * 2) / ((performance.now() - startedMs) / 1000);
}

/**
 * Keeps connections, as kube-scheduler does. It reads into buffers of its own: the collections of a client that makes one for
 * each piece of an answer take up to 10 ms, and are none of the extender's time.
 */
class Caller {
  readonly #idle: Connection[] = [];
  readonly #host: string;
  readonly #port: number;

  constructor(address: string) {
    const [host = '', port = ''] = address.split(':');
    this.#host = host;
    this.#port = Number(port);
  }

  /** Sends a body and returns the answer, a part of `into`. @throws Error unless it was 200 */
  async post(path: string, parts: readonly Buffer[], into: Buffer): Promise<Buffer> {
    const connection = this.#idle.pop() ?? new Connection(this.#host, this.#port);
    const answer = await connection.post(path, parts, into);
    if (connection.isOpen) this.#idle.push(connection);
    return answer;
  }

  close(): void {
    for (const connection of this.#idle) connection.close();
  }
}

/** A connection with one request at a time. */
class Connection {
  readonly #socket: Socket;
  readonly #host: string;
  readonly #piece = Buffer.alloc(PIECE_BYTES);
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #answer: Answer | undefined;
  /** False once the server has announced its end: it takes a bounded number of requests on one. */
  isOpen = true;

  constructor(host: string, port: number) {
    this.#host = host;
    const callback = (count: number): boolean => {
      this.#read(this.#piece.subarray(0, count));
      return true;
    };
    this.#socket = connect({ host, port, noDelay: true, onread: { buffer: this.#piece, callback } });
    this.#socket.once('error', (error) => this.#answer?.reject(error));
    this.#socket.once('close', () => this.#answer?.reject(new Error('the connection ended within an answer')));
  }

  post(path: string, parts: readonly Buffer[], into: Buffer): Promise<Buffer> {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    return new Promise((resolve, reject) => {
      this.#answer = { path, into, resolve, reject, headBytes: 0, bodyBytes: undefined, read: 0 };
      const head = `POST ${path} HTTP/1.1\r\nhost: ${this.#host}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
      this.#socket.cork();
      this.#socket.write(head);
      for (const part of parts) this.#socket.write(part);
      this.#socket.uncork();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(piece: Buffer): void {
    const answer = this.#answer;
    if (answer === undefined) return;
    answer.read += piece.copy(
      answer.into,
      answer.read,
      answer.bodyBytes === undefined ? this.#readHead(answer, piece) : 0,
    );
    if (answer.bodyBytes === undefined || answer.read < answer.bodyBytes) return;
    const body = answer.into.subarray(0, answer.read);
    this.#answer = undefined;
    if (this.#head.toString('latin1', 0, OK.length) === OK) answer.resolve(body);
    else
      answer.reject(
        new Error(`${answer.path}: ${this.#head.toString('latin1', 0, 15)} ${body.toString('utf8', 0, 500)}`),
      );
  }

  /** Returns where the body begins in a piece. */
  #readHead(answer: Answer, piece: Buffer): number {
    const before = answer.headBytes;
    answer.headBytes += piece.copy(this.#head, before);
    const end = this.#head.subarray(0, answer.headBytes).indexOf(HEAD_END);
    if (end < 0) return piece.length;
    const text = this.#head.toString('latin1', 0, end);
    if (/\r\nconnection: close/i.test(text)) this.isOpen = false;
    const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
    if (length === undefined) throw new Error(`${answer.path}: an answer without a content-length`);
    answer.bodyBytes = Number(length);
    if (answer.bodyBytes > answer.into.length) throw new Error(`${answer.path}: an answer of ${length} bytes`);
    return end + HEAD_END.length - before;
  }
}

/** An answer that is being read. */
type Answer = {
  readonly path: string;
  readonly into: Buffer;
  readonly resolve: (body: Buffer) => void;
  readonly reject: (error: Error) => void;
  headBytes: number;
  bodyBytes: number | undefined;
  read: number;
};

const PIECE_BYTES = 65_536;
const HEAD_BYTES = 16_384;
const HEAD_END = '\r\n\r\n';
const OK = 'HTTP/1.1 200';
