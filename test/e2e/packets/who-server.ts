// Answers every TCP connection and UDP packet with "<name> <address of the asker>"; runs inside a network namespace.
// A line "stay" on a TCP connection keeps it open: each further line is answered alike.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

const [name = '', port = '0'] = process.argv.slice(2);
const answer = (address = ''): string => `${name} ${address.replace(/^::ffff:/, '')}\n`;

createServer((socket) => {
  socket.setEncoding('utf8').on('error', () => undefined);
  socket.on('data', (line) => {
    const isLast = !String(line).startsWith('stay');
    socket[isLast ? 'end' : 'write'](answer(socket.remoteAddress));
  });
}).listen(Number(port), '::', () => process.stdout.write('tcp\n'));

const udp = createSocket({ type: 'udp6', ipv6Only: false });
udp.on('message', (_bytes, from) => udp.send(answer(from.address), from.port, from.address));
udp.bind(Number(port), '::', () => process.stdout.write('udp\n'));
process.stdin.resume().on('end', () => process.exit(0));
