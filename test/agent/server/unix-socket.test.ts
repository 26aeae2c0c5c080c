import test from 'ava';
import { AgentError } from '../../../agent/agent-error.ts';
import { publishSocket, refuseLiveSocket } from '../../../agent/server/unix-socket.ts';

test('refuseLiveSocket: says which path cannot be a socket', async (t) => {
  const error = await t.throwsAsync(refuseLiveSocket('/etc/passwd/agent.sock'), { instanceOf: AgentError });
  t.is(error?.code, 'SOCKET');
  t.regex(error?.message ?? '', /^\/etc\/passwd\/agent\.sock cannot be a socket: .*ENOTDIR.*; set --socket$/);
});

test('publishSocket: says why the folder of the socket cannot be made', async (t) => {
  const error = await t.throwsAsync(
    publishSocket('/proc/tke-test/agent.sock', async () => {}),
    { instanceOf: AgentError },
  );
  t.regex(error?.message ?? '', /cannot be a socket: .*ENOENT/);
});
