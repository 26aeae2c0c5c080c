import { connect, type Socket } from 'node:net';
import test from 'ava';
import { type HttpEndpoints, serveHttpEndpoints } from '../../runtime/http-endpoints.ts';
import { waitUntil } from '../support/wait-until.ts';

async function open(t: import('ava').ExecutionContext): Promise<{ readonly port: number }> {
  const endpoints: HttpEndpoints = await serveHttpEndpoints('127.0.0.1:0', {
    liveness: () => undefined,
    readiness: () => undefined,
    metrics: async () => 'up 1\n',
    metricsContentType: 'text/plain',
  });
  t.teardown(() => endpoints.close());
  return { port: Number(endpoints.address.split(':')[1]) };
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

test('serveHttpEndpoints: keeps a bounded number of half-sent requests, and those for seconds only', async (t) => {
  t.timeout(30_000);
  const { port } = await open(t);
  const halves = await Promise.all(Array.from({ length: 400 }, () => sendHalf(port)));
  await waitUntil(async () => halves.filter(({ isOpen }) => isOpen).length <= 128, {
    what: 'connections over the limit are closed',
    timeoutMs: 4_000,
    everyMs: 20,
  });
  await waitUntil(async () => halves.every(({ isOpen }) => !isOpen), {
    what: 'late heads are given up',
    timeoutMs: 20_000,
    everyMs: 100,
  });
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  t.is(await response.text(), 'up 1\n');
});
