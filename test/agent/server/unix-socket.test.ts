import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import test from 'ava';
import { publishSocket, refuseLiveSocket } from '../../../agent/server/unix-socket.ts';
import { createTempDir } from '../../support/temp-dir.ts';

function listen(path: string, server: Server = createServer()): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(path, () => resolve(server));
  });
}

test('publishSocket: shows a socket only root may open, over whatever lay there', async (t) => {
  const dir = createTempDir('sock');
  mkdirSync(dir.join('run'));
  writeFileSync(dir.join('run', 'a.sock'), 'left by somebody');
  const server = createServer();
  t.teardown(() => {
    server.close();
    dir.close();
  });
  await publishSocket(dir.join('run', 'a.sock'), async (temporary) => {
    await listen(temporary, server);
  });
  const stat = statSync(dir.join('run', 'a.sock'));
  t.true(stat.isSocket());
  t.is(stat.mode & 0o777, 0o600);
  await t.throwsAsync(refuseLiveSocket(dir.join('run', 'a.sock')), { code: 'ANOTHER_AGENT' });
});

test('refuseLiveSocket: passes where nothing is, refuses a file that is no socket and a path too long', async (t) => {
  const dir = createTempDir('sock');
  t.teardown(() => dir.close());
  await refuseLiveSocket(dir.join('none.sock'));
  writeFileSync(dir.join('file'), '');
  await t.throwsAsync(refuseLiveSocket(dir.join('file')), { code: 'SOCKET', message: /is no socket/ });
  await t.throwsAsync(refuseLiveSocket(`/run/${'x'.repeat(120)}`), { code: 'SOCKET', message: /longer than/ });
});
