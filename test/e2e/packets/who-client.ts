// Asks a who-server once and prints its answer; runs inside a network namespace. Exit code 1 when nothing comes in time.
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';

const [protocol = 'tcp', host = '', port = '0'] = process.argv.slice(2);
const LIMIT_MS = 4_000;
/** A first UDP packet may be lost to neighbour discovery. */
const UDP_RETRY_MS = 700;

function done(text: string): never {
  process.stdout.write(text);
  process.exit(0);
}

setTimeout(() => process.exit(1), LIMIT_MS);
if (protocol === 'tcp') {
  const socket = connect(Number(port), host, () => socket.write('once\n'));
  socket
    .setEncoding('utf8')
    .on('data', (text) => done(String(text)))
    .on('error', () => process.exit(1));
} else {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (bytes) => done(bytes.toString()));
  const ask = (): void => socket.send('once', Number(port), host, () => undefined);
  ask();
  setInterval(ask, UDP_RETRY_MS);
}
