import { request } from 'node:https';
import test from 'ava';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { readTlsFiles } from '../../runtime/tls-files.ts';
import { serveExtender } from '../../scheduler/http/serve-extender.ts';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';
import { askDuring } from '../support/port-attack.ts';
import { createTempDir } from '../support/temp-dir.ts';

/** The `httpTimeout` of the extender in the documented KubeSchedulerConfiguration: later answers are lost. */
const ANSWER_MS = 15_000;

test('serveExtender: answers kube-scheduler during 1,100 connections that begin no handshake, and begin again', async (t) => {
  t.timeout(120_000);
  const dir = createTempDir('held-connections');
  t.teardown(() => dir.close());
  const own = await makeKeyPair(dir.path, 'extender');
  const client = await makeKeyPair(dir.path, 'client');
  const server = await serveExtender({
    address: '127.0.0.1:0',
    certificates: readTlsFiles({ certFile: own.certPath, keyFile: own.keyPath, clientCaFile: client.certPath }),
    verbs: { filter: () => ({}) },
    readiness: () => undefined,
    bodyLimitBytes: 1024,
    clock: systemClock,
    log: silentLogger,
  });
  t.teardown(() => server.close(0));
  const port = Number(server.address.split(':')[1]);
  const filter = () =>
    new Promise<boolean>((resolve) => {
      const tls = { ca: own.cert, cert: client.cert, key: client.key, signal: AbortSignal.timeout(ANSWER_MS) };
      const target = { host: '127.0.0.1', port, path: '/filter', method: 'POST', agent: false, ...tls };
      const sent = request(target, (response) => {
        response.resume().once('close', () => resolve(response.statusCode === 200));
      });
      sent.once('error', () => resolve(false)).end('{}');
    });
  const { answered, asked, begun } = await askDuring({ port, kind: 'plain', connections: 1_100 }, filter);
  t.log(`${answered} of ${asked} answers; ${begun} connections`);
  t.true(answered >= asked - 1, `${answered} of ${asked}`);
});
