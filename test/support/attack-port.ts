/**
 * `node test/support/attack-port.ts PORT KIND COUNT [TEXT]`: holds that many connections to 127.0.0.1:PORT and begins each again
 * when it ends. KIND is `plain` or `tls`; TEXT is sent on each connection. With `plain-unread` nothing is read of what the server sends, and each
 * connection is given up after a while, as its end cannot be noticed. Prints how many connections were begun.
 */
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

const [port = '', kind = '', count = '', text = ''] = process.argv.slice(2);
const AGAIN_MS = 20;
const UNREAD_MS = 500;
let begun = 0;

function open(): void {
  begun += 1;
  const to = { port: Number(port), host: '127.0.0.1' };
  const socket: Socket = kind.startsWith('tls') ? connectTls({ ...to, rejectUnauthorized: false }) : connectPlain(to);
  socket.on('error', () => undefined).on('close', () => setTimeout(open, AGAIN_MS));
  if (text !== '') socket.write(text);
  if (kind === 'plain-unread') setTimeout(() => socket.destroy(), UNREAD_MS);
  else socket.resume();
}

for (let index = 0; index < Number(count); index++) open();
setInterval(() => process.stdout.write(`${begun}\n`), 200);
