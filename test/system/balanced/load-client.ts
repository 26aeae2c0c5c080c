// Asks pages all the time until a line comes on standard input; a child process in the client's namespace (see load.ts). Arguments: a
// JSON list of `{"host", "port", "protocol", "name", "isKept", "count"}`, so many askers each, the least number of requests and the first source port of UDP. Each asker has one connection, or one source
// port, at a time; a kept one is used for LIFE_MS, another one once. Nothing is tried again. Prints its report as JSON.
import { createSocket } from 'node:dgram';
import { Agent, request } from 'node:http';
import type { LoadReport, LoadTarget } from './load.ts';

/** Shorter than a Pod serves after its deletion: connections that a Pod has end before it does. */
const LIFE_MS = 1_000;
const PAUSE_MS = 40;
const LIMIT_MS = 10_000;
const SHOWN = 20;
const [FIRST_PORT, LAST_PORT] = [20_000, 60_000];

const targets = JSON.parse(process.argv[2] ?? '[]') as readonly LoadTarget[];
const failures: string[] = [];
const answers: Record<string, number> = {};
let [requests, failed, connections] = [0, 0, 0];
const least = Number(process.argv[3] ?? 0);
let nextPort = Number(process.argv[4] ?? FIRST_PORT);
let isStopped = false;

const isOver = (): boolean => isStopped && requests >= least;
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));

/** Uses one connection, until it is old. */
async function useOnce(target: LoadTarget): Promise<void> {
  connections += 1;
  const endMs = performance.now() + (target.isKept ? LIFE_MS : 0);
  const one = target.protocol === 'TCP' ? openHttp(target) : openUdp(target);
  do {
    requests += 1;
    try {
      const name = (await one.ask()).split(' ')[0] ?? '';
      answers[name] = (answers[name] ?? 0) + 1;
    } catch (error) {
      failed += 1;
      const what = `${target.protocol} ${target.host}:${target.port} ${target.isKept ? 'kept' : 'short'}`;
      if (failures.length < SHOWN) failures.push(`${new Date().toISOString()} ${what}: ${String(error)}`);
      break;
    }
    await pause();
  } while (performance.now() < endMs && !isOver());
  one.close();
}

type Connection = { ask(): Promise<string>; close(): void };

function openHttp({ host, port, isKept, name }: LoadTarget): Connection {
  const headers = name === undefined ? {} : { host: name };
  const agent = new Agent({ keepAlive: isKept, maxSockets: 1 });
  const ask = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(LIMIT_MS);
      const asked = request({ host, port, agent, signal, headers, path: '/' }, (answer) => {
        if (answer.statusCode !== 200) return reject(new Error(`answered ${answer.statusCode}`));
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        answer.on('end', () => (answer.complete ? resolve(text) : reject(new Error('half an answer'))));
        answer.on('error', reject);
      });
      asked.on('error', reject).end();
    });
  return { ask, close: () => agent.destroy() };
}

/** Each flow has a source port of its own: connection tracking would take a used one for the same flow, for two minutes. */
function openUdp({ host, port }: LoadTarget): Connection {
  const socket = createSocket('udp4');
  socket.bind(nextPort);
  nextPort = nextPort < LAST_PORT ? nextPort + 1 : FIRST_PORT;
  const ask = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no answer')), LIMIT_MS);
      socket.removeAllListeners().once('error', reject);
      socket.once('message', (bytes) => {
        clearTimeout(timer);
        resolve(bytes.toString());
      });
      socket.send('hello', port, host);
    });
  return { ask, close: () => socket.close() };
}

async function askAlways(target: LoadTarget): Promise<void> {
  while (!isOver()) await useOnce(target);
}

process.stdin.once('data', () => {
  isStopped = true;
});
// The parent is gone: so is what it wanted to know.
process.stdin.on('end', () => process.exit(0));
await Promise.all(targets.flatMap((target) => Array.from({ length: target.count }, () => askAlways(target))));
process.stdout.write(`${JSON.stringify({ requests, failed, connections, failures, answers } satisfies LoadReport)}\n`);
process.exit(0);
