// A server of pages, as a Pod runs it: a child process in the Pod's namespace (see web-pod.ts), or the program of an image (see
// test/cluster/web-server-image.ts). Arguments: its name, by default that of its host, its port, and what it does at SIGTERM:
// `finish` (what is under way ends, then it does), `ignore` or `exit` (at once). It answers `NAME CLIENT`, by HTTP and by UDP,
// and prints a line for each request: the client's address first, X-Forwarded-For last, as in the
// log of nginx.
import { createSocket } from 'node:dgram';
import { fstatSync } from 'node:fs';
import { createServer } from 'node:http';
import { hostname } from 'node:os';

const [name = hostname(), portText = '80', atEnd = 'finish'] = process.argv.slice(2);
const port = Number(portText);
let isEnding = false;

const server = createServer({ keepAliveTimeout: 60_000 }, (request, answer) => {
  const client = request.socket.remoteAddress ?? '';
  const forwarded = request.headers['x-forwarded-for'] ?? '-';
  process.stdout.write(`${client} "${request.method} ${request.url} HTTP/${request.httpVersion}" 200 "${forwarded}"\n`);
  if (isEnding) answer.setHeader('connection', 'close');
  answer.end(`${name} ${client}\n`);
});
const udp = createSocket('udp4', (bytes, from) => {
  process.stdout.write(`${from.address} "UDP ${bytes.length} bytes"\n`);
  udp.send(`${name} ${from.address}`, from.port, from.address);
});
process.on('SIGTERM', () => {
  if (atEnd === 'ignore') return;
  if (atEnd === 'exit') process.exit(0);
  isEnding = true;
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
udp.bind(port, '0.0.0.0', () => server.listen(port, '0.0.0.0', () => process.stdout.write('ready\n')));
// The parent is gone: so is what it started. A container has /dev/null there.
if (!fstatSync(0).isCharacterDevice()) process.stdin.resume().on('end', () => process.exit(0));
