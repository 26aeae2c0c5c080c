import { copyFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { systemClock } from '../../runtime/clock.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { silentLogger } from '../../runtime/log.ts';
import { followTlsFiles, readTlsFiles } from '../../runtime/tls-files.ts';
import { readSchedulerConfig } from '../../scheduler/config/options.ts';
import { serveExtender } from '../../scheduler/http/serve-extender.ts';
import { type Authority, type KeyPair, makeAuthority, makeKeyPair, signCertificate } from '../../sim/kube-api/pki.ts';
import { createTempDir } from '../support/temp-dir.ts';

const read = (...argv: readonly string[]) => readSchedulerConfig({ argv, env: {}, readFile: () => '' });
const TLS = ['--tls-cert-file=/tls.crt', '--tls-private-key-file=/tls.key'] as const;
const LOOPBACK = ['127.0.0.1:61690', '127.8.9.1:1', '[::1]:61690'] as const;
const REACHED = ['0.0.0.0:61690', '[::]:61690', '10.0.0.4:61690', 'localhost:61690', 'node-1:61690'] as const;

/** Settings that let somebody bind Pods who shows no certificate, with the flag that the error has to name. */
const REFUSED: readonly (readonly [flags: readonly string[], named: RegExp])[] = [
  [[], /--client-ca-file: expected .*\/bind.*docs\/static-ip\.md/s],
  [TLS, /--client-ca-file/],
  [[...TLS, '--client-ca-file='], /--client-ca-file/],
  ...LOOPBACK.map((address) => [[`--listen-address=${address}`], /--allow-anonymous-loopback/] as const),
  ...REACHED.map(
    (address) => [['--allow-anonymous-loopback', `--listen-address=${address}`], /--listen-address: expected/] as const,
  ),
  [['--client-allowed-names=system:kube-scheduler', '--allow-anonymous-loopback'], /--client-ca-file/],
  [['--client-ca-file=/ca.crt'], /--tls-cert-file/],
];

for (const [flags, named] of REFUSED) {
  test(`readSchedulerConfig: refuses to let everybody bind Pods, with ${flags.join(' ') || 'no flags'}`, (t) => {
    const error = t.throws(() => read(...flags), { instanceOf: ConfigError });
    t.regex(error?.message ?? '', named);
  });
}

for (const flags of [
  [...TLS, '--client-ca-file=/ca.crt'],
  [...TLS, '--client-ca-file=/ca.crt', '--client-allowed-names=system:kube-scheduler,other'],
  ...LOOPBACK.map((address) => ['--allow-anonymous-loopback', `--listen-address=${address}`]),
]) {
  test(`readSchedulerConfig: takes ${flags.join(' ')}`, (t) => {
    t.is(read(...flags).kind, 'run');
  });
}

type Scene = {
  readonly ask: (client?: KeyPair) => Promise<{ readonly status: number; readonly text: string }>;
  readonly sign: (name: string, use?: 'clientAuth' | 'serverAuth') => Promise<KeyPair>;
  readonly bound: () => number;
  /** The certificate of the server itself. */
  readonly own: KeyPair;
  /** Gives the server another certificate, as a renewed Secret does. */
  readonly renew: (to: KeyPair) => Promise<void>;
  /** Makes another authority that of the clients. */
  readonly changeAuthority: (to: Authority) => Promise<void>;
  readonly folder: string;
};

/** A server whose /bind counts its calls, and an authority that signs certificates of clients. */
async function open(t: ExecutionContext, allowedNames: readonly string[]): Promise<Scene> {
  const dir = createTempDir('client-auth');
  t.teardown(() => dir.close());
  const own = await makeKeyPair(dir.path, 'extender');
  const authority = await makeAuthority(dir.path, 'clients');
  const clientCaFile = dir.join('ca.crt');
  copyFileSync(authority.certPath, clientCaFile);
  const files = { certFile: own.certPath, keyFile: own.keyPath, clientCaFile };
  const pair = readTlsFiles(files);
  let bound = 0;
  const server = await serveExtender({
    address: '127.0.0.1:0',
    certificates: pair,
    allowedNames,
    verbs: {
      bind: () => {
        bound += 1;
        return {};
      },
    },
    readiness: () => undefined,
    bodyLimitBytes: 1024,
    clock: systemClock,
    log: silentLogger,
  });
  t.teardown(() => server.close(0));
  const follower = followTlsFiles({ server, files, pair, clock: systemClock, log: silentLogger });
  const agents = new Map<KeyPair | undefined, Agent>();
  t.teardown(() => {
    for (const agent of agents.values()) agent.destroy();
  });
  const agentOf = (client: KeyPair | undefined): Agent => {
    const known = agents.get(client);
    if (known !== undefined) return known;
    const made = new Agent({
      keepAlive: true,
      rejectUnauthorized: false,
      ...(client && { cert: client.cert, key: client.key }),
    });
    agents.set(client, made);
    return made;
  };
  return {
    ask: (client) => post(server.address, agentOf(client)),
    sign: (name, use = 'clientAuth') => signCertificate(authority, name, use),
    bound: () => bound,
    changeAuthority: async (to) => {
      copyFileSync(to.certPath, clientCaFile);
      await follower.check();
    },
    own,
    renew: async (to) => {
      copyFileSync(to.certPath, own.certPath);
      copyFileSync(to.keyPath, own.keyPath);
      await follower.check();
    },
    folder: dir.path,
  };
}

async function post(address: string, agent: Agent): Promise<{ readonly status: number; readonly text: string }> {
  const [host = '', port = ''] = address.split(':');
  return await new Promise((resolve, reject) => {
    const sent = request({ host, port: Number(port), path: '/bind', method: 'POST', agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.once('error', reject);
    sent.end('{}');
  });
}

test('serveExtender: binds for a client of the authority, and for nobody else', async (t) => {
  const { ask, sign, bound, folder } = await open(t, []);
  t.is((await ask(await sign('anybody'))).status, 200);
  await t.throwsAsync(ask(), undefined, 'no certificate');
  await t.throwsAsync(ask(await makeKeyPair(folder, 'self-signed')), undefined, 'of nobody');
  const strange = await makeAuthority(folder, 'strange');
  await t.throwsAsync(ask(await signCertificate(strange, 'anybody', 'clientAuth')), undefined, 'of another authority');
  await t.throwsAsync(ask(await sign('a-server', 'serverAuth')), undefined, 'the certificate of a server');
  t.is(bound(), 1);
});

test('serveExtender: of many clients of one authority, such as the cluster’s, answers those with an allowed name', async (t) => {
  const { ask, sign, bound } = await open(t, ['system:kube-scheduler']);
  const scheduler = await sign('system:kube-scheduler');
  t.is((await ask(scheduler)).status, 200);
  t.is((await ask(scheduler)).status, 200);
  for (const name of ['system:node:n1', 'kubernetes-admin', 'system:kube-scheduler2']) {
    const { status, text } = await ask(await sign(name));
    t.is(status, 403, name);
    t.regex(text, /--client-allowed-names/);
    t.true(text.includes(name));
  }
  t.is(bound(), 2);
});

test('serveExtender: with another authority of clients, also connections of before end', async (t) => {
  const { ask, sign, bound, changeAuthority, folder } = await open(t, []);
  const before = await sign('before');
  t.is((await ask(before)).status, 200);
  const next = await makeAuthority(folder, 'next');
  await changeAuthority(next);
  await t.throwsAsync(ask(before));
  t.is((await ask(await signCertificate(next, 'after', 'clientAuth'))).status, 200);
  t.is(bound(), 2);
});

test('serveExtender: answers another replica by the certificate that it has itself, or had before', async (t) => {
  const { ask, own, renew, sign, bound, folder } = await open(t, ['system:kube-scheduler']);
  const [first, second, third] = [{ ...own }, await makeKeyPair(folder, 'second'), await makeKeyPair(folder, 'third')];
  t.is((await ask(first)).status, 200);
  await t.throwsAsync(ask(second), undefined, 'of nobody yet');
  await renew(second);
  t.is((await ask({ ...first })).status, 200, 'the other replica has not read the new one yet');
  t.is((await ask({ ...second })).status, 200);
  await renew(third);
  await t.throwsAsync(ask({ ...first }), undefined, 'two before');
  t.is((await ask({ ...second })).status, 200);
  t.is((await ask(await sign('system:node:n1'))).status, 403);
  t.is(bound(), 4);
});
