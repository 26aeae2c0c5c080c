import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { readCloud, readNec } from '../../../../../cli/commands/diff/remote/read-remote-state.ts';
import { systemClock } from '../../../../../runtime/clock.ts';
import { UserError } from '../../../../../runtime/user-error.ts';
import { createTempDir } from '../../../../support/temp-dir.ts';
import { NOWHERE } from '../../../agent/captured.ts';

/** Answers of servers that are not well, or are something else. */
const ANSWERS: Readonly<Record<string, RequestListener>> = {
  'refuses with 403': (_, answer) =>
    answer.writeHead(403, { 'content-type': 'application/json' }).end('{"message":"no"}'),
  'fails with 500': (_, answer) => answer.writeHead(500).end('oops'),
  'answers garbage': (_, answer) =>
    answer.writeHead(200, { 'content-type': 'application/json' }).end('<html>\u001b[2J'),
  'answers with another document': (_, answer) =>
    answer.writeHead(200, { 'content-type': 'application/json' }).end('{"Response":{"x":1},"kind":"Table"}'),
  'answers null': (_, answer) => answer.writeHead(200, { 'content-type': 'application/json' }).end('null'),
  'hangs up': (request) => request.socket.destroy(),
  'says nothing': () => undefined,
  'never ends': (_, answer) => void answer.writeHead(200, { 'content-type': 'application/json' }).write('{"Resp'),
};

const around = { clock: systemClock, signal: new AbortController().signal };

async function serve(t: ExecutionContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

for (const [how, listener] of Object.entries(ANSWERS)) {
  test(`readNec: tells of a cluster that ${how}`, async (t) => {
    t.timeout(120_000);
    const url = await serve(t, listener);
    const dir = createTempDir('nec');
    t.teardown(dir.close);
    writeFileSync(
      dir.join('config'),
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c', users: [{ name: 'u', user: {} }] },
        clusters: [{ name: 'c', cluster: { server: url } }],
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      }),
    );
    const global = { ...NOWHERE, kubeconfig: dir.join('config') };
    const error = await t.throwsAsync(readNec({ ...around, global, env: {} }, 'node-1'));
    t.true(error instanceof UserError, error?.stack);
    t.true(error instanceof UserError && error.next !== '');
  });

  test(`readCloud: tells of a cloud that ${how}`, async (t) => {
    t.timeout(120_000);
    const endpoint = await serve(t, listener);
    const env = { TENCENTCLOUD_SECRET_ID: 'id', TENCENTCLOUD_SECRET_KEY: 'key' };
    const error = await t.throwsAsync(readCloud({ ...around, env }, { region: 'ap-x', endpoint }, ['eni-1']));
    t.true(error instanceof UserError && error.code === 'NO_CLOUD', error?.stack);
    t.false(`${error?.message}`.includes('key'), 'keys are nobody’s business');
  });
}
