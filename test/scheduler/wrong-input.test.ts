import { copyFileSync } from 'node:fs';
import { Agent as PlainAgent, request as plainRequest } from 'node:http';
import { Agent, request } from 'node:https';
import { connect } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { systemClock } from '../../runtime/clock.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { silentLogger } from '../../runtime/log.ts';
import { followTlsFiles, readTlsFiles } from '../../runtime/tls-files.ts';
import { readSchedulerConfig } from '../../scheduler/config/options.ts';
import { type ExtenderServer, type ExtenderServerOptions, serveExtender } from '../../scheduler/http/serve-extender.ts';
import { preempt } from '../../scheduler/verbs/preempt.ts';
import { prioritize } from '../../scheduler/verbs/prioritize.ts';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { rebuilt } from './index-scene.ts';
import { necOf, podOf } from './scheduler-scene.ts';

const LIMIT = 256 * 1024;

async function serve(t: ExecutionContext, own: Partial<ExtenderServerOptions> = {}): Promise<ExtenderServer> {
  const deps = { index: rebuilt({ necs: [necOf({ name: 'n1' })] }), clock: systemClock };
  const server = await serveExtender({
    address: '127.0.0.1:0',
    verbs: { prioritize: (body) => prioritize(deps, body), preempt: (body) => preempt(deps, body) },
    readiness: () => undefined,
    bodyLimitBytes: LIMIT,
    clock: systemClock,
    log: silentLogger,
    ...own,
  });
  t.teardown(() => server.close(0));
  return server;
}

const GOOD = JSON.stringify({ Pod: podOf({ name: 'a' }), NodeNames: ['n1'] });

async function post(server: ExtenderServer, path: string, body: string | Uint8Array, method = 'POST') {
  const sent = method === 'GET' ? {} : { body: Buffer.from(body) };
  const response = await fetch(`http://${server.address}${path}`, { method, ...sent });
  return { status: response.status, text: await response.text() };
}

/** Sends bytes as they are, and returns all that comes back until the connection ends. */
async function raw(server: ExtenderServer, bytes: string): Promise<string> {
  const [host = '', port = ''] = server.address.split(':');
  return await new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), host, () => socket.end(bytes));
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('close', () => resolve(text));
    socket.once('error', reject);
  });
}

type Row = readonly [title: string, path: string, body: string, status: number, words: RegExp];

const DEEP = '['.repeat(100_000);
const WRONG: readonly Row[] = [
  ['no JSON', '/prioritize', 'hello', 400, /no JSON/],
  ['JSON that is cut off', '/prioritize', GOOD.slice(0, -9), 400, /no JSON/],
  ['nothing', '/prioritize', '', 400, /no body/],
  ['nested without an end', '/prioritize', DEEP, 400, /no JSON/],
  ['nested deep', '/prioritize', DEEP + ']'.repeat(100_000), 400, /no ExtenderArgs.*expected an object/],
  ['null', '/prioritize', 'null', 400, /no ExtenderArgs.*Pod: expected a Pod/],
  ['a list', '/prioritize', '[]', 400, /no ExtenderArgs/],
  [
    'every fault at once',
    '/prioritize',
    '{"Pod":{},"NodeNames":[1]}',
    400,
    /metadata\.namespace.*metadata\.name.*NodeNames/,
  ],
  [
    'Nodes without names',
    '/prioritize',
    JSON.stringify({ Pod: podOf({ name: 'a' }), Nodes: { items: [{}] } }),
    400,
    /Nodes\.items/,
  ],
  [
    'a uid of a hundred thousand letters',
    '/prioritize',
    JSON.stringify({ Pod: podOf({ name: 'a', uid: 'x'.repeat(100_000) }), NodeNames: ['n1'] }),
    400,
    /metadata\.uid: expected the name of an object/,
  ],
  ['no nodes', '/prioritize', JSON.stringify({ Pod: podOf({ name: 'a' }) }), 400, /NodeNames: expected names/],
  [
    'victims of another shape',
    '/preempt',
    JSON.stringify({ Pod: podOf({ name: 'a' }), NodeNameToMetaVictims: { n1: { Pods: [7] } } }),
    400,
    /victims of n1/,
  ],
  ['more than the limit', '/prioritize', `"${'x'.repeat(LIMIT)}"`, 413, /larger than 0\.25 MiB; set nodeCacheCapable/],
  ['another path', '/filters', '{}', 404, /known are \/prioritize, \/preempt/],
  ['a name of Object', '/constructor', '{}', 404, /no such path/],
];

for (const [title, path, body, status, words] of WRONG) {
  test(`serveExtender: answers one error, and goes on, when it gets ${title}`, async (t) => {
    const server = await serve(t);
    const answer = await post(server, path, body);
    t.is(answer.status, status);
    const { Error: told } = JSON.parse(answer.text) as { Error: string };
    t.regex(told, words);
    t.true(told.length < 2_000);
    t.is((await post(server, '/prioritize', GOOD)).status, 200);
  });
}

test('serveExtender: says which method it takes', async (t) => {
  const server = await serve(t);
  t.is((await post(server, '/prioritize', '', 'GET')).status, 405);
});

test('serveExtender: goes on when a client is cut off, sends no HTTP, or lies about the length', async (t) => {
  const server = await serve(t);
  const cutOff = await raw(server, 'POST /prioritize HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n{"Pod"');
  t.regex(cutOff, /^HTTP\/1\.1 400[\s\S]*cut off"}\n$/);
  t.regex(await raw(server, '\u0016\u0003\u0001 this is no HTTP\r\n\r\n'), /^HTTP\/1\.1 400[\s\S]*no request of HTTP/);
  const huge = 'POST /prioritize HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n';
  t.regex(await raw(server, huge), /^HTTP\/1\.1 413/);
  const chunk = `${LIMIT.toString(16)}\r\n${'x'.repeat(LIMIT)}\r\n`;
  const chunked = `POST /prioritize HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${chunk}${chunk}`;
  t.regex(await raw(server, chunked), /^HTTP\/1\.1 413/);
  t.is((await post(server, '/prioritize', GOOD)).status, 200);
});

test('serveExtender: refuses while another leads, and says so', async (t) => {
  const server = await serve(t, { readiness: () => 'another replica leads' });
  const { status, text } = await post(server, '/prioritize', GOOD);
  t.is(status, 503);
  t.deepEqual(JSON.parse(text), { Error: 'another replica leads' });
});

test('serveExtender: keeps no connection while another leads, so that its client comes to that one', async (t) => {
  const gate = { why: '' as string };
  const server = await serve(t, { readiness: () => (gate.why === '' ? undefined : gate.why) });
  const [host = '', port = ''] = server.address.split(':');
  const agent = new PlainAgent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const ask = (body: string) =>
    new Promise<{ status: number; connection: string; isReused: boolean }>((resolve, reject) => {
      const sent = plainRequest(
        { host, port: Number(port), path: '/prioritize', method: 'POST', agent },
        (response) => {
          const { statusCode: status = 0, headers } = response;
          const answer = { status, connection: String(headers.connection), isReused: sent.reusedSocket };
          response.resume().once('end', () => resolve(answer));
        },
      );
      sent.once('error', reject);
      sent.end(body);
    });
  t.deepEqual(await ask(GOOD), { status: 200, connection: 'keep-alive', isReused: false });
  gate.why = 'another replica leads';
  t.deepEqual(await ask(GOOD), { status: 503, connection: 'close', isReused: true });
});

test('serveExtender: is rid of a client whose head is late and who will not go', async (t) => {
  const timeouts = { headMs: 50, checkMs: 20 };
  const server = await serve(t, { timeouts });
  const [host = '', port = ''] = server.address.split(':');
  const socket = connect({ host, port: Number(port), allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  const isGone = { value: false };
  // A write to a connection that is no more is an error.
  socket.on('error', () => {
    isGone.value = true;
  });
  socket.resume().write('POST /prioritize HTTP/1.1\r\nhost: a\r\n');
  const drip = async () => {
    socket.write('x');
    await systemClock.sleep(20);
    return isGone.value;
  };
  await waitUntil(drip, { what: 'the end of the connection' });
  t.true(isGone.value);
});

test.serial('serveExtender: reads only so many great bodies at once', async (t) => {
  const server = await serve(t);
  const [host = '', port = ''] = server.address.split(':');
  const body = GOOD.padEnd(LIMIT, ' ');
  const begin = () => {
    const socket = connect(Number(port), host);
    t.teardown(() => socket.destroy());
    const seen = { text: '' };
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      seen.text += chunk;
    });
    socket.on('error', () => {});
    socket.write(`POST /prioritize HTTP/1.1\r\nhost: a\r\ncontent-length: ${LIMIT}\r\n\r\n`);
    socket.write(body.slice(0, -1));
    return { socket, seen };
  };
  const all = Array.from({ length: 6 }, begin);
  const refused = () => all.filter(({ seen }) => seen.text.startsWith('HTTP/1.1 503'));
  await waitUntil(() => refused().length > 0, { what: 'a refusal' });
  t.regex(refused()[0]?.seen.text ?? '', /too many large bodies/);
  t.true(refused().length <= 2);
  t.is((await post(server, '/prioritize', '', 'GET')).status, 405);
  const taken = all.filter((one) => !refused().includes(one));
  for (const { socket } of taken) socket.write(' ');
  await waitUntil(() => taken.every(({ seen }) => seen.text.startsWith('HTTP/1.1 200')), { what: 'the answers' });
  t.is((await post(server, '/prioritize', body)).status, 200);
});

test('serveExtender: answers 500, and goes on, when a verb fails', async (t) => {
  const verbs = {
    prioritize: () => {
      throw new TypeError('a fault');
    },
  };
  const server = await serve(t, { verbs });
  t.is((await post(server, '/prioritize', GOOD)).status, 500);
  t.is((await post(server, '/prioritize', GOOD)).status, 500);
});

test('serveExtender: ends what is under way before it closes', async (t) => {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const prioritizeLate = async () => {
    begun.resolve();
    await go.promise;
    return [];
  };
  const server = await serve(t, { verbs: { prioritize: prioritizeLate } });
  const answer = post(server, '/prioritize', GOOD);
  await begun.promise;
  const closed = server.close(10_000);
  go.resolve();
  t.is((await answer).text, '[]');
  await closed;
  await t.throwsAsync(post(server, '/prioritize', GOOD));
});

test('serveExtender: serves new connections with the new certificate, and keeps those that are there', async (t) => {
  const folder = createTempDir('tls');
  t.teardown(() => folder.close());
  const [first, second] = [await makeKeyPair(folder.path, 'first'), await makeKeyPair(folder.path, 'second')];
  const files = { certFile: folder.join('tls.crt'), keyFile: folder.join('tls.key') };
  const install = (pair: typeof first, what: readonly ('cert' | 'key')[]): void => {
    if (what.includes('cert')) copyFileSync(pair.certPath, files.certFile);
    if (what.includes('key')) copyFileSync(pair.keyPath, files.keyFile);
  };
  install(first, ['cert', 'key']);
  const certificates = readTlsFiles(files);
  const server = await serve(t, { certificates });
  const follower = followTlsFiles({ server, files, pair: certificates, clock: systemClock, log: silentLogger });
  const agent = new Agent({ keepAlive: true, ca: [first.cert, second.cert] });
  t.teardown(() => agent.destroy());
  const before = await postTls(server, agent);
  t.is(before.subject, 'first');

  install(second, ['cert']);
  await follower.check();
  // Half of a pair is no pair: the one before serves on.
  t.is((await postTls(server, new Agent({ ca: [first.cert, second.cert] }))).subject, 'first');
  install(second, ['key']);
  await follower.check();
  t.is((await postTls(server, new Agent({ ca: [first.cert, second.cert] }))).subject, 'second');
  const again = await postTls(server, agent);
  t.is(again.status, 200);
  t.true(again.isReused);
  t.is(again.subject, 'first');
});

test('serveExtender: with authorities of clients, answers none without a certificate of theirs, and speaks TLS 1.2 at least', async (t) => {
  const folder = createTempDir('tls');
  t.teardown(() => folder.close());
  const [own, client, stranger] = [
    await makeKeyPair(folder.path, 'own'),
    await makeKeyPair(folder.path, 'client'),
    await makeKeyPair(folder.path, 'stranger'),
  ];
  const certificates = readTlsFiles({
    certFile: own.certPath,
    keyFile: own.keyPath,
    clientCaFile: client.certPath,
  });
  const server = await serve(t, { certificates });
  const known = new Agent({ ca: own.cert, cert: client.cert, key: client.key });
  t.is((await postTls(server, known)).status, 200);
  await t.throwsAsync(postTls(server, new Agent({ ca: own.cert })));
  await t.throwsAsync(postTls(server, new Agent({ ca: own.cert, cert: stranger.cert, key: stranger.key })));
  const [host = '', port = ''] = server.address.split(':');
  const old = new Promise((resolve, reject) => {
    const options = {
      host,
      port: Number(port),
      ca: own.cert,
      cert: client.cert,
      key: client.key,
      maxVersion: 'TLSv1.1',
    } as const;
    const socket = connectTls({ ...options, minVersion: 'TLSv1', ciphers: 'ALL@SECLEVEL=0' }, () =>
      resolve(socket.getProtocol()),
    );
    socket.once('error', reject);
  });
  await t.throwsAsync(old);
});

test('readSchedulerConfig: names every fault at once', (t) => {
  const argv = ['--tls-cert-file=/a', '--client-ca-file=/c', '--leader-elect-renew=30s', '--filter-wait=1h'];
  const wrong = t.throws(() => readSchedulerConfig({ argv, env: {}, readFile: () => '' }), { instanceOf: ConfigError });
  t.regex(wrong?.message ?? '', /--filter-wait/);
  const together = argv.slice(0, 3);
  const { message = '' } =
    t.throws(() => readSchedulerConfig({ argv: together, env: {}, readFile: () => '' }), { instanceOf: ConfigError }) ??
    {};
  t.regex(message, /--tls-private-key-file.*--leader-elect-renew/);
});

type Answer = { readonly status: number; readonly subject: string; readonly isReused: boolean };

async function postTls(server: ExtenderServer, agent: Agent): Promise<Answer> {
  const [host = '', port = ''] = server.address.split(':');
  return await new Promise((resolve, reject) => {
    const sent = request({ host, port: Number(port), path: '/prioritize', method: 'POST', agent }, (response) => {
      // An HTTPS answer comes over a TLS socket.
      const { subject } = (response.socket as TLSSocket).getPeerCertificate();
      const answer = { status: response.statusCode ?? 0, subject: String(subject?.CN), isReused: sent.reusedSocket };
      response.resume().once('end', () => resolve(answer));
    });
    sent.once('error', reject);
    sent.end(GOOD);
  });
}
