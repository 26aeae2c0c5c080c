import { connect, createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { ConnectionTable, originOf } from '../../runtime/connection-table.ts';
import { waitUntil } from '../support/wait-until.ts';

const MAX = 8;

/** A server on all addresses of loopback, and clients of it that have an address of their own. */
async function open(t: ExecutionContext) {
  const working = new Set<number | undefined>();
  const table = new ConnectionTable(MAX, ({ socket }) => working.has(socket.remotePort));
  const server = createServer((socket) => table.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  t.teardown(() => {
    table.closeAll();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const client = async (localAddress: string): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress }).on('error', () => undefined);
    await new Promise((resolve) => socket.once('connect', resolve));
    await waitUntil(() => [...table.all].some((one) => one.socket.remotePort === socket.localPort) || undefined, {
      what: 'the connection is in the table',
    });
    return socket.resume();
  };
  return { table, client, working };
}

const isOpen = ({ table }: { readonly table: ConnectionTable }, client: Socket): boolean =>
  [...table.all].some(({ socket }) => socket.remotePort === client.localPort);

test('ConnectionTable: closes the connection with the longest silence for one more', async (t) => {
  const scene = await open(t);
  const clients: Socket[] = [];
  for (let index = 0; index < MAX; index++) clients.push(await scene.client('127.0.0.1'));
  const [first, second] = clients;
  if (first === undefined || second === undefined) return t.fail();
  const held = [...scene.table.all].find(({ socket }) => socket.remotePort === first.localPort);
  if (held === undefined) return t.fail();
  scene.table.touch(held);
  const next = await scene.client('127.0.0.1');
  t.true(isOpen(scene, first));
  t.false(isOpen(scene, second));
  t.true(isOpen(scene, next));
  t.is([...scene.table.all].length, MAX);
  await waitUntil(() => second.closed || undefined, { what: 'its client notices it' });
});

test('ConnectionTable: closes no connection of a sender that has few while another sender has many', async (t) => {
  const scene = await open(t);
  const few = await scene.client('127.0.0.1');
  for (let index = 0; index < 3 * MAX; index++) await scene.client('127.0.0.2');
  t.true(isOpen(scene, few));
  t.is([...scene.table.all].length, MAX);
});

test('ConnectionTable: closes a connection whose answer is being worked out last', async (t) => {
  const scene = await open(t);
  const clients: Socket[] = [];
  for (let index = 0; index < MAX; index++) {
    clients.push(await scene.client('127.0.0.1'));
    if (index < MAX - 1) scene.working.add(clients.at(-1)?.localPort);
  }
  await scene.client('127.0.0.1');
  t.deepEqual(
    clients.map((client) => isOpen(scene, client)),
    [...Array(MAX - 1).fill(true), false],
  );
});

for (const [address, origin] of [
  ['10.0.0.4', '10.0.0.4'],
  ['::ffff:10.0.0.4', '10.0.0.4'],
  ['::1', '0:0:0:0'],
  ['2001:db8::4', '2001:db8:0:0'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['1::', '1:0:0:0'],
] as const) {
  test(`originOf: ${address} is of ${origin}`, (t) => {
    t.is(originOf(address), origin);
  });
}
