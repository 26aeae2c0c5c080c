import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import test from 'ava';
import { openSockDiag, type TcpEnd } from '../../../netlink/sock-diag.ts';
import { TCP_ESTABLISHED } from '../../../netlink/uapi/inet-diag.ts';
import { waitUntil } from '../../support/wait-until.ts';

const endsOf = (accepted: Socket): readonly [TcpEnd, TcpEnd] => [
  { ip: accepted.remoteAddress ?? '', port: accepted.remotePort ?? 0 },
  { ip: accepted.localAddress ?? '', port: accepted.localPort ?? 0 },
];

for (const [listens, connects] of [
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.1', '::ffff:127.0.0.1'],
  ['::', '127.0.0.1'],
  ['::1', '::1'],
] as const) {
  test(`findTcp: the end of a connection from ${connects} to a listener on ${listens}`, async (t) => {
    const server = createServer();
    server.listen(0, listens);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const accepting = once(server, 'connection');
    const client = connect(port, connects);
    const [accepted] = (await accepting) as [Socket];
    const sockets = openSockDiag();
    t.teardown(() => {
      accepted.destroy();
      client.destroy();
      server.close();
      sockets.close();
    });
    const [from, to] = endsOf(accepted);
    const found = sockets.findTcp(from, to);
    t.like(found, { state: TCP_ESTABLISHED, uid: process.getuid?.(), sport: client.localPort, dport: port });
    t.true((found?.inode ?? 0) > 0);

    client.destroy();
    const closed = await waitUntil(
      () => {
        const now = sockets.findTcp(from, to);
        return now === undefined || now.inode === 0 ? { now } : undefined;
      },
      { what: 'no process has it open' },
    );
    t.not(closed.now?.state, TCP_ESTABLISHED);
    t.is(sockets.findTcp({ ip: connects, port }, { ip: connects, port: 1 }), undefined, 'a listener is no end');
  });
}
