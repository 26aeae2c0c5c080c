import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { readTlsFiles } from '../../runtime/tls-files.ts';
import { serveExtender } from '../../scheduler/http/serve-extender.ts';
import { blockOf } from '../cluster/doc-commands.ts';
import { createTempDir } from '../support/temp-dir.ts';

const PAGE = readFileSync(new URL('../../docs/static-ip.md', import.meta.url), 'utf8');
const NAME = 'tke-eni-ip-scheduler';

/** Notes with what it was called. */
const HELM = '#!/bin/sh\necho "$@" >> helm.log\n';

/** Takes `create secret generic NAME --from-file=KEY=FILE …` and puts the files where a mounted Secret has them. */
const KUBECTL = `#!/bin/sh
mkdir -p secret
for word in "$@"; do
  case $word in --from-file=*=*) pair="\${word#--from-file=}"; cp "\${pair#*=}" "secret/\${pair%%=*}" ;; esac
done
`;

test('docs/static-ip.md: its commands make certificates by which the extender answers kube-scheduler', async (t) => {
  const dir = createTempDir('doc-certificates');
  t.teardown(() => dir.close());
  for (const [tool, text] of [
    ['kubectl', KUBECTL],
    ['helm', HELM],
  ] as const) {
    writeFileSync(dir.join(tool), text);
    chmodSync(dir.join(tool), 0o755);
  }
  symlinkSync(fileURLToPath(new URL('../../conf', import.meta.url)), dir.join('conf'));
  const script = [blockOf(PAGE, 'sh', 'The scheduler extender'), blockOf(PAGE, 'sh', 'Who may ask the extender')].join(
    '\n',
  );
  const env = { ...process.env, PATH: `${dir.path}:${process.env['PATH']}` };
  execFileSync('sh', ['-ec', script], { cwd: dir.path, env, stdio: 'pipe' });

  const secret = (key: string): string => join(dir.path, 'secret', key);
  const pair = readTlsFiles({
    certFile: secret('tls.crt'),
    keyFile: secret('tls.key'),
    clientCaFile: secret('ca.crt'),
  });
  const server = await serveExtender({
    address: '127.0.0.1:0',
    certificates: pair,
    // As the manifests set it.
    allowedNames: ['system:kube-scheduler'],
    verbs: { bind: () => ({}) },
    readiness: () => undefined,
    bodyLimitBytes: 1024,
    clock: systemClock,
    log: silentLogger,
  });
  t.teardown(() => server.close(0));
  const read = (name: string): string => readFileSync(dir.join(`${NAME}-${name}`), 'utf8');
  const statusOf = (client: { readonly cert?: string; readonly key?: string }): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const agent = new Agent({ ca: read('ca.crt'), servername: `${NAME}.kube-system.svc`, ...client });
      const [host = '', port = ''] = server.address.split(':');
      const sent = request({ host, port: Number(port), path: '/bind', method: 'POST', agent }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode));
      });
      sent.once('error', reject);
      sent.end('{}');
    });
  t.is(await statusOf({ cert: read('client.crt'), key: read('client.key') }), 200);
  const clusterIP = /--set scheduler\.clusterIP=(\S+)/.exec(readFileSync(dir.join('helm.log'), 'utf8'))?.[1];
  t.is(new X509Certificate(pair.cert).checkIP(clusterIP ?? ''), clusterIP);
  const config = readFileSync(dir.join('kube-scheduler-configuration.yaml'), 'utf8');
  t.true(config.includes(`urlPrefix: https://${clusterIP}\n`), config);
  await t.throwsAsync(statusOf({}));
});
