import { createServer } from 'node:net';
import test from 'ava';
import { listeningInodes, readAgentProcess } from '../../../../cli/commands/doctor/read-processes.ts';
import { createTempDir } from '../../../support/temp-dir.ts';

const HEAD = 'Num       RefCount Protocol Flags    Type St Inode Path';

test('listeningInodes: takes sockets that listen, also those renamed into place', (t) => {
  const table = [
    HEAD,
    '0000000000000000: 00000002 00000000 00010000 0001 01 101 /run/tke-eni/agent.sock.new',
    '0000000000000000: 00000002 00000000 00010000 0001 01 102 /run/tke-eni/agent.sock',
    '0000000000000000: 00000003 00000000 00000000 0001 03 103 /run/tke-eni/agent.sock',
    '0000000000000000: 00000002 00000000 00010000 0001 01 104 /run/other.sock',
    '0000000000000000: 00000002 00000000 00010000 0001 01 105',
    '',
  ].join('\n');
  t.deepEqual(listeningInodes(table, '/run/tke-eni/agent.sock'), ['101', '102']);
});

test('readAgentProcess: finds the process that listens on the socket', async (t) => {
  const dir = createTempDir('agent-process');
  const server = createServer();
  t.teardown(() => {
    server.close();
    dir.close();
  });
  const path = dir.join('agent.sock');
  await new Promise<void>((resolve) => server.listen(path, resolve));
  // Workers are threads of this process.
  t.is(readAgentProcess(path)?.pid, process.pid);
  t.is(readAgentProcess(dir.join('other.sock')), undefined);
});
