// Checks targets of load balancers; runs as a child process in the router's namespace (see health-checks.ts). Takes
// `{"listenerId", "targets", "check"}` a line on standard input, `targets` empty when there is nothing to check any more. Prints
// `{"listenerId", "key", "isAlive"}` a line when the state of a target changes.
import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { request } from 'node:http';
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { startTimer, type Timer, timeoutSignal } from '../../../runtime/clock.ts';
import type { ListenerPath } from '../api/model/clb/types.ts';
import { countCheck, NO_CHECKS } from './health-counter.ts';
import { nextSourcePort } from './source-port.ts';

type Check = ListenerPath['healthCheck'];
type Order = {
  readonly listenerId: string;
  readonly targets: readonly { readonly ip: string; readonly port: number }[];
  readonly check: Check;
};

const [source = '', speedText = '1'] = process.argv.slice(2);
const speed = Number(speedText);
const LEAST_TIMEOUT_MS = 200;

/** Stops the checks of a target, by `listenerId ip:port`. */
const running = new Map<string, () => void>();

function follow({ listenerId, targets, check }: Order): void {
  const wanted = new Set(targets.map(({ ip, port }) => `${listenerId} ${ip}:${port} ${JSON.stringify(check)}`));
  for (const [name, stop] of running) {
    if (!name.startsWith(`${listenerId} `) || wanted.has(name)) continue;
    stop();
    running.delete(name);
  }
  for (const target of targets) {
    const name = `${listenerId} ${target.ip}:${target.port} ${JSON.stringify(check)}`;
    if (!running.has(name)) running.set(name, watch(listenerId, target, check));
  }
}

function watch(listenerId: string, target: { readonly ip: string; readonly port: number }, check: Check): () => void {
  let count = NO_CHECKS;
  let isStopped = false;
  let timer: Timer | undefined;
  const port = check.CheckPort > 0 ? check.CheckPort : target.port;
  const timeoutMs = Math.max(LEAST_TIMEOUT_MS, (check.TimeOut * 1000) / speed);
  const once = async (): Promise<void> => {
    const isGood = await probe(target.ip, port, check, timeoutMs);
    if (isStopped) return;
    const before = count.isAlive;
    count = countCheck(count, isGood, check);
    const key = `${target.ip}:${target.port}`;
    if (count.isAlive !== before)
      process.stdout.write(`${JSON.stringify({ listenerId, key, isAlive: count.isAlive })}\n`);
    timer = startTimer(() => void once(), (check.IntervalTime * 1000) / speed);
  };
  void once();
  return () => {
    isStopped = true;
    timer?.cancel();
  };
}

function probe(ip: string, port: number, check: Check, timeoutMs: number): Promise<boolean> {
  switch (check.CheckType) {
    case 'HTTP':
      return probeHttp(ip, port, check, timeoutMs);
    case 'PING':
      return probePing(ip, timeoutMs);
    case 'CUSTOM':
      return probeUdp(ip, port, check, timeoutMs);
    default:
      return probeTcp(ip, port, timeoutMs);
  }
}

function probeTcp(host: string, port: number, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, localAddress: source, localPort: nextSourcePort() });
    const end = (isGood: boolean) => (): void => {
      timer.cancel();
      // A check ends its connection with a RST, as the real one does.
      socket.resetAndDestroy();
      resolve(isGood);
    };
    const timer = startTimer(end(false), timeoutMs);
    socket.once('connect', end(true)).once('error', end(false));
  });
}

function probeHttp(host: string, port: number, check: Check, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { host: check.HttpCheckDomain, connection: 'close' };
    const options = {
      host,
      port,
      localAddress: source,
      localPort: nextSourcePort(),
      method: check.HttpCheckMethod,
      path: check.HttpCheckPath,
      headers,
    };
    const asked = request({ ...options, agent: false, signal: timeoutSignal(timeoutMs) }, (answer) => {
      answer.resume();
      const bit = 2 ** (Math.floor((answer.statusCode ?? 0) / 100) - 1);
      resolve((check.HttpCode & bit) !== 0);
    });
    asked.once('error', () => resolve(false));
    asked.end();
  });
}

function probePing(ip: string, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    execFile('ping', ['-n', '-q', '-c', '1', '-W', `${timeoutMs / 1000}`, '-I', source, ip], (error) =>
      resolve(error === null),
    );
  });
}

function probeUdp(ip: string, port: number, check: Check, timeoutMs: number): Promise<boolean> {
  const encoding = check.ContextType === 'HEX' ? 'hex' : 'utf8';
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const end = (isGood: boolean): void => {
      timer.cancel();
      socket.close();
      resolve(isGood);
    };
    const timer = startTimer(() => end(false), timeoutMs);
    socket.once('error', () => end(false));
    socket.once('message', (bytes) => end(bytes.equals(Buffer.from(check.RecvContext, encoding))));
    socket.bind(0, source, () => socket.send(Buffer.from(check.SendContext, encoding), port, ip));
  });
}

createInterface({ input: process.stdin })
  .on('line', (line) => follow(JSON.parse(line) as Order))
  // The parent is gone: so are its load balancers.
  .on('close', () => process.exit(0));
