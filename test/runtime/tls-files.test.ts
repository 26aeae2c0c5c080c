import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import test from 'ava';
import { systemClock } from '../../runtime/clock.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { silentLogger } from '../../runtime/log.ts';
import { followTlsFiles, readTlsFiles } from '../../runtime/tls-files.ts';
import { makeKeyPair } from '../../sim/kube-api/pki.ts';

const folder = mkdtempSync(join(tmpdir(), 'tke-test-tls-'));
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

function filesOf(name: string) {
  return { certFile: join(folder, `${name}.crt`), keyFile: join(folder, `${name}.key`) };
}

test('readTlsFiles: names every file that is not there', (t) => {
  const files = filesOf('nobody');
  const error = t.throws(() => readTlsFiles(files), { instanceOf: ConfigError });
  t.deepEqual(
    error?.faults.map(({ path, got }) => [path, got]),
    [
      [files.certFile, 'ENOENT'],
      [files.keyFile, 'ENOENT'],
    ],
  );
});

test('readTlsFiles: says that a key is of another certificate, and shows nothing of it', async (t) => {
  const one = await makeKeyPair(folder, 'fits-one');
  await makeKeyPair(folder, 'fits-other');
  const mixed = { certFile: one.certPath, keyFile: filesOf('fits-other').keyFile };
  const error = t.throws(() => readTlsFiles(mixed), { instanceOf: ConfigError, message: /private key of the cert/ });
  t.notRegex(error?.message ?? '', /BEGIN|[A-Za-z0-9+/]{40}/);
});

test('readTlsFiles: refuses authorities of clients that are none, or half written', async (t) => {
  const { certPath, keyPath, cert } = await makeKeyPair(folder, 'authority');
  const clientCaFile = join(folder, 'clients.pem');
  const files = { certFile: certPath, keyFile: keyPath, clientCaFile };
  for (const [text, got] of [
    ['', 'none'],
    ['no certificate', 'none'],
    [`${cert}${String(cert).slice(0, 200)}`, '2, of which 1 have an end'],
  ] as const) {
    writeFileSync(clientCaFile, text);
    const error = t.throws(() => readTlsFiles(files), { instanceOf: ConfigError });
    t.deepEqual(error?.faults, [{ path: clientCaFile, expected: 'a certificate in PEM', got }]);
  }
  writeFileSync(clientCaFile, `${cert}${cert}`);
  t.is(readTlsFiles(files).ca, `${cert}${cert}`);
});

test('followTlsFiles: takes other authorities of clients', async (t) => {
  const { certPath, keyPath, cert } = await makeKeyPair(folder, 'renewed');
  const clientCaFile = join(folder, 'renewed.pem');
  const files = { certFile: certPath, keyFile: keyPath, clientCaFile };
  writeFileSync(clientCaFile, String(cert));
  const taken: unknown[] = [];
  const server = { setSecureContext: ({ ca }: { readonly ca?: string }) => taken.push(ca) };
  const follower = followTlsFiles({ server, files, pair: readTlsFiles(files), clock: systemClock, log: silentLogger });
  await follower.check();
  writeFileSync(clientCaFile, `${cert}${cert}`);
  await follower.check();
  t.deepEqual(taken, [`${cert}${cert}`]);
});

test('readTlsFiles: tells when the certificate ends', async (t) => {
  await makeKeyPair(folder, 'ends');
  const { expiresMs } = readTlsFiles(filesOf('ends'));
  t.true(expiresMs > Date.now() + 86_400_000 && expiresMs < Date.now() + 3 * 86_400_000);
});

test('followTlsFiles: serves a swapped certificate to new connections, never one half written', async (t) => {
  await makeKeyPair(folder, 'first');
  await makeKeyPair(folder, 'second');
  for (const end of ['crt', 'key']) copyFileSync(join(folder, `first.${end}`), join(folder, `live.${end}`));
  const files = filesOf('live');
  const pair = readTlsFiles(files);
  const server = createServer(pair, (_, response) => response.end('ok'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const follower = followTlsFiles({ server, files, pair, clock: systemClock, log: silentLogger });

  await follower.check();
  t.is(await subjectAt(port), 'first');
  copyFileSync(join(folder, 'second.crt'), files.certFile);
  await follower.check();
  t.is(await subjectAt(port), 'first');
  t.regex(follower.problem ?? '', /private key/);
  copyFileSync(join(folder, 'second.key'), files.keyFile);
  await follower.check();
  t.is(await subjectAt(port), 'second');
  writeFileSync(files.certFile, 'no certificate');
  await follower.check();
  t.is(await subjectAt(port), 'second');
  t.is(follower.reloads, 1);
});

test('followTlsFiles: ends its run when it is told to', async (t) => {
  await makeKeyPair(folder, 'run');
  const files = filesOf('run');
  const pair = readTlsFiles(files);
  const server = { setSecureContext: () => t.fail('nothing is new') };
  const stop = new AbortController();
  const run = followTlsFiles({ server, files, pair, clock: systemClock, log: silentLogger }).run(stop.signal);
  stop.abort();
  await t.notThrowsAsync(run);
});

function subjectAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      const { CN } = socket.getPeerCertificate().subject;
      socket.destroy();
      resolve(String(CN));
    });
    socket.once('error', reject);
  });
}
