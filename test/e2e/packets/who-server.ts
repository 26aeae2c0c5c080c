// Answers every TCP connection and UDP packet with "<name> <address of the asker>", in many network namespaces at once.
// A line "stay" on a TCP connection keeps it open: each further line is answered alike.
// Arguments: the port, then for each server its name, the path of its namespace ('' is the process's own) and the address that
// it serves ('::' is all of them).
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { openNetns, withNetns } from '../../../netlink/netns.ts';

const [portText = '0', ...rest] = process.argv.slice(2);
const port = Number(portText);

for (let at = 0; at + 2 < rest.length; at += 3) {
  const [name = '', path = '', address = '::'] = rest.slice(at, at + 3);
  if (path === '') listen(name, address);
  else {
    using netns = openNetns(path);
    withNetns(netns, () => listen(name, address));
  }
}
process.stdin.resume().on('end', () => process.exit(0));
process.stdout.write('ready\n');

/** Both sockets are made within the call, or they would be in another namespace. */
function listen(name: string, address: string): void {
  const answer = (asker = ''): string => `${name} ${asker.replace(/^::ffff:/, '')}\n`;
  createServer((socket) => {
    socket.setEncoding('utf8').on('error', () => undefined);
    socket.on('data', (line) => {
      const isLast = !String(line).startsWith('stay');
      socket[isLast ? 'end' : 'write'](answer(socket.remoteAddress));
    });
    // Without a host, or it would be looked up first.
  }).listen(port);

  const type = address.includes(':') ? 'udp6' : 'udp4';
  const udp = createSocket({
    type,
    lookup: (host, _options, done) => done(null, host, type === 'udp6' ? 6 : 4),
  });
  udp.on('message', (_bytes, from) => udp.send(answer(from.address), from.port, from.address));
  udp.bind(port, address);
}
