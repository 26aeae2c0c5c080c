import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import test from 'ava';
import { serveHttpEndpoints } from '../../runtime/http-endpoints.ts';
import { askDuring, type PortAttack } from '../support/port-attack.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';

async function open(t: import('ava').ExecutionContext, metrics = 'up 1\n'): Promise<{ readonly port: number }> {
  const endpoints = await serveHttpEndpoints('127.0.0.1:0', {
    liveness: () => undefined,
    readiness: () => undefined,
    registry: { contentType: 'text/plain', metrics: async () => metrics },
  });
  t.teardown(() => endpoints?.close());
  return { port: Number(endpoints?.address.split(':')[1]) };
}

/** A connection that sends half of a request; `isOpen` as long as the server keeps it. */
async function sendHalf(port: number): Promise<{ readonly socket: Socket; isOpen: boolean }> {
  const half = { socket: connect(port, '127.0.0.1'), isOpen: true };
  half.socket
    .on('error', () => undefined)
    .on('close', () => {
      half.isOpen = false;
    });
  await new Promise((resolve) => half.socket.once('connect', resolve).once('close', resolve));
  half.socket.write('GET /metrics HT');
  half.socket.resume();
  return half;
}

shortTest('serveHttpEndpoints: keeps a bounded number of half-sent requests, and those for seconds only', async (t) => {
  t.timeout(120_000);
  const { port } = await open(t);
  const halves = await Promise.all(Array.from({ length: 400 }, () => sendHalf(port)));
  // Those within the limit are open still: it was the limit that closed the others, not their late heads.
  const isBounded = (): boolean => {
    const open = halves.filter(({ isOpen }) => isOpen).length;
    return open > 0 && open <= 128;
  };
  await waitUntil(isBounded, { what: 'connections over the limit are closed', everyMs: 20 });
  await waitUntil(async () => halves.every(({ isOpen }) => !isOpen), {
    what: 'late heads are given up',
    everyMs: 100,
  });
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  t.is(await response.text(), 'up 1\n');
});

/** The time limit of the liveness probe in the manifests. */
const PROBE_MS = 10_000;
/** So many probes that fail in a row end the container: failureThreshold in the manifests. One may fail on a busy machine. */
const FAILURES = 4;
const METRICS = 'GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n';

const ATTACKS: readonly (readonly [title: string, kind: PortAttack['kind'], text: string, answerBytes: number])[] = [
  ['300 half-sent requests', 'plain', 'GET /metrics HT', 5],
  ['300 requests whose answers of 2 MB nobody reads', 'plain-unread', METRICS, 2_000_000],
  ['300 times 500 requests at once whose answers of 60 KB nobody reads', 'plain-unread', METRICS.repeat(500), 60_000],
];

for (const [title, kind, text, answerBytes] of partOf(ATTACKS, ([, , , bytes]) => bytes < 1_000)) {
  test.serial(`serveHttpEndpoints: answers a probe during ${title}, which begin again`, async (t) => {
    t.timeout(300_000);
    const { port } = await open(t, 'x'.repeat(answerBytes));
    const before = process.memoryUsage().rss;
    let most = 0;
    const { answered, asked, missedInRow, begun } = await askDuring(
      { port, kind, connections: 300, text },
      async () => {
        most = Math.max(most, process.memoryUsage().rss - before);
        return (await ask(port, '/healthz')) === 200;
      },
    );
    t.log(`${answered} of ${asked} answers; ${begun} connections; ${(most / 2 ** 20).toFixed(0)} MiB more`);
    t.true(missedInRow < FAILURES && answered > asked / 2, `${answered} of ${asked}, ${missedInRow} missed in a row`);
    t.true(most < 160 * 2 ** 20, `${most} bytes`);
  });
}

/** Asks on a connection of its own, as a probe does; 0: no answer in time. */
function ask(port: number, path: string): Promise<number> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path, agent: false, timeout: PROBE_MS }, (response) => {
      response.resume().once('close', () => resolve(response.statusCode ?? 0));
    });
    sent
      .once('timeout', () => sent.destroy())
      .once('error', () => resolve(0))
      .end();
  });
}
