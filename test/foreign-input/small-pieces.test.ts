import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { Child } from '../../sim/support/child.ts';
import { longTest, shortTest } from '../support/suite-part.ts';
import { reviewOf, startWebhookProcess } from './measure-servers.ts';

const HEAD = 'POST /add-pod-eni-ip-limit HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';
/** What a process may take for one message, whatever the pieces. Kept as they came, 600,000 take 200 MiB. */
const COST_MIB = 32;

/** Sends what `write` writes; resolves with the status of the answer, undefined when the connection ends without one. */
async function statusOf(socket: Socket, write: (socket: Socket) => Promise<unknown>): Promise<number | undefined> {
  let text = '';
  socket
    .on('error', () => undefined)
    .on('data', (data) => {
      text += data.toString('latin1');
    });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await write(socket);
  await closed;
  return text === '' ? undefined : Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
}

/** Resolves when a text is sent. */
function send(socket: Socket, text: string): Promise<unknown> {
  return new Promise((resolve) => socket.write(text, resolve));
}

/** Each byte as a chunk of its own. */
function chunked(body: string): string {
  return `${[...body].map((byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`;
}

shortTest(
  'webhook: bodies in pieces of one byte cost no memory, small ones are answered, and at the port of metrics none is read',
  async (t) => {
    t.timeout(300_000);
    const webhook = await startWebhookProcess();
    t.teardown(webhook.close);
    const secure = () => connectTls({ host: '127.0.0.1', port: webhook.port, ca: webhook.pair.cert });
    const review = reviewOf('[]');
    const small = `${HEAD}connection: close\r\ntransfer-encoding: chunked\r\n\r\n${chunked(review)}`;
    t.is(await statusOf(secure(), (socket) => send(socket, small)), 200);
    const before = webhook.peakMib();
    const large = `${HEAD}transfer-encoding: chunked\r\n\r\n${chunked('x'.repeat(600_000))}`;
    const outcome = await statusOf(secure(), (socket) => send(socket, large));
    t.true(outcome === 413 || outcome === undefined, `${outcome}`);
    const inRecords = await statusOf(secure(), async (socket) => {
      socket.setNoDelay();
      await send(socket, `${HEAD}content-length: 100000\r\n\r\n`);
      for (let sent = 0; sent < 30_000 && !socket.destroyed; sent++) await send(socket, 'x');
    });
    t.true(inRecords === 413 || inRecords === undefined, `${inRecords}`);
    const cost = webhook.peakMib() - before;
    t.log(`${cost.toFixed(0)} MiB`);
    t.true(cost < COST_MIB, `${cost} MiB`);
    const head = 'POST /healthz HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n';
    const socket = connectPlain(webhook.metricsPort, '127.0.0.1');
    t.is(await statusOf(socket, () => send(socket, `${head}${'1\r\nx\r\n'.repeat(20)}`)), 200);
    const kept = connectPlain(webhook.metricsPort, '127.0.0.1');
    kept.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n');
    await once(kept, 'data');
    kept.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n');
    await once(kept, 'data');
    kept.destroy();
  },
);

/** Writes single bytes, each of which the reader gets alone: the pipe is one of packets. */
const SINGLE_BYTES = `
import os, subprocess, sys
read, write = os.pipe2(os.O_DIRECT)
child = subprocess.Popen(sys.argv[2:], stdin=read)
os.close(read)
try:
    for _ in range(int(sys.argv[1])): os.write(write, b' ')
except BrokenPipeError: pass
os.close(write)
sys.exit(child.wait())
`;

const READ_STDIN = `
const { readAll } = await import(${JSON.stringify(pathToFileURL(`${import.meta.dirname}/../../cni-plugins/skel/stdio.ts`).href)});
let got;
try { got = String(readAll(0).length); } catch (error) { got = error.message; }
console.log(JSON.stringify({ got, mib: process.resourceUsage().maxRSS / 1024 }));
`;

shortTest('readAll: standard input in pieces of one byte costs no memory, and has a bound', async (t) => {
  t.timeout(300_000);
  const read = async (bytes: number): Promise<{ readonly got: string; readonly mib: number }> => {
    const reader = [process.execPath, '--input-type=module', '--eval', READ_STDIN];
    const child = new Child(['python3', '-c', SINGLE_BYTES, String(bytes), ...reader]);
    t.is((await child.exited).code, 0, child.stderr);
    return JSON.parse(child.stdout);
  };
  const [few, many] = [await read(1_000), await read(40_000)];
  t.is(few.got, '1000');
  t.regex(many.got, /too many pieces/);
  t.log(`${few.mib.toFixed(0)} and ${many.mib.toFixed(0)} MiB`);
  t.true(many.mib - few.mib < COST_MIB, `${many.mib - few.mib} MiB`);
});

longTest('readAll: standard input that does not end has a deadline', async (t) => {
  t.timeout(300_000);
  const reader = [process.execPath, '--input-type=module', '--eval', READ_STDIN];
  const child = new Child(['sh', '-c', '(echo "{"; exec sleep 45) | "$0" "$@"', ...reader]);
  t.teardown(() => child.stop());
  t.is((await child.exited).code, 0, child.stderr);
  t.regex(JSON.parse(child.stdout).got, /standard input or output/);
});
