// One end of a numbered TCP stream; runs as a child process inside a network namespace (see tcp-stream.ts). The server sends
// back what it gets. The client sends numbers and expects them back in their order; answers go out as JSON lines.
import { createConnection, createServer } from 'node:net';
import { createInterface } from 'node:readline';

const [role = '', address = '', portText = '0', bytesText = '4'] = process.argv.slice(2);
/** A number takes so many bytes; all but the first four are zeros. */
const NUMBER_BYTES = Number(bytesText);
const EVERY_MS = 2;

let sent = 0;
let returned = 0;
let pending = Buffer.alloc(0);
let problem = '';
let isStopped = false;

function say(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function serve(): void {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  server.listen(Number(portText), address, () => say({ event: 'bound' }));
}

function ask(): void {
  const socket = createConnection({ host: address, port: Number(portText) });
  socket.setNoDelay(true);
  socket.on('connect', () => {
    say({ event: 'bound' });
    setInterval(() => {
      if (isStopped) return;
      const number = Buffer.alloc(NUMBER_BYTES);
      number.writeUInt32BE(sent++);
      socket.write(number);
    }, EVERY_MS);
  });
  socket.on('data', (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    for (; pending.length >= NUMBER_BYTES; pending = pending.subarray(NUMBER_BYTES)) {
      if (pending.readUInt32BE() !== returned) problem ||= `${pending.readUInt32BE()} came in the place of ${returned}`;
      returned += 1;
    }
  });
  socket.on('error', (error) => {
    problem ||= error.message;
  });
  socket.on('close', () => {
    problem ||= 'closed';
  });
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (line === 'stop') isStopped = true;
    if (line === 'report') say({ event: 'report', sent, returned, problem });
  })
  // The parent is gone: so is the stream.
  .on('close', () => process.exit(0));
if (role === 'serve') serve();
else ask();
