// One end of connections through a load balancer; runs as a child process in a namespace (see peer.ts). Takes an order a line on
// standard input and prints `{"order", "result"}` a line. As a server it says its name and the address of its client, and
// echoes each line after its name (of HTTP: JSON about the request); as a client it prints what it heard, or the code of an error, or `timeout`.
import { createSocket } from 'node:dgram';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { startTimer, systemClock } from '../../../runtime/clock.ts';
import type { PeerOrder } from './peer.ts';

const [name = ''] = process.argv.slice(2);
const ANSWER_MS = 700;
const AT_ONCE = 20;
/** How long a connection of `talk` is idle before it is used again. */
const HOLD_MS = 30;

/** What listens, by port. */
const servers = new Map<number, { close(): void }>();
/** Sockets of clients that are connected to a port of this process. */
const accepted = new Map<number, Set<Socket>>();
/** Addresses that connected, by port. */
const clients = new Map<number, Set<string>>();
/** Paths that were asked of a server of HTTP. */
const paths = new Set<string>();
const MOST_PATHS = 1_000;
/** Connections that stay open, by id. */
const open = new Map<string, Socket>();

async function obey(order: PeerOrder): Promise<unknown> {
  switch (order.do) {
    case 'listen':
      return listen(order.port, order.protocol ?? 'tcp');
    case 'silence':
      servers.get(order.port)?.close();
      for (const socket of accepted.get(order.port) ?? []) socket.destroy();
      return 'silent';
    case 'clients':
      return [...(clients.get(order.port) ?? [])].sort();
    case 'http-asked':
      return [...paths];
    case 'ask': {
      const answers: string[] = [];
      for (let count = 0; count < order.count; count++) answers.push(await askOnce(order.host, order.port));
      return answers;
    }
    case 'talk':
      return await talk(order.host, order.port, order.count);
    case 'ask-udp':
      return await askUdp(order.host, order.port, order.count);
    case 'open':
      return await openOne(order.id, order.host, order.port);
    case 'say': {
      const socket = open.get(order.id);
      if (socket === undefined) return 'not open';
      const heard = nextLine(socket);
      socket.write(`${order.text}\n`);
      return await heard;
    }
  }
}

async function listen(port: number, protocol: 'tcp' | 'udp' | 'http'): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const noted = clients.get(port) ?? new Set();
  clients.set(port, noted);
  if (protocol === 'udp') {
    const socket = createSocket('udp4');
    socket.on('message', (_, { address, port: from }) => socket.send(`${name} ${address}`, from, address));
    socket.bind(port, resolve);
    servers.set(port, socket);
  } else {
    const server =
      protocol === 'tcp'
        ? createServer(serve(port, noted))
        : createHttpServer((ask, answer) => describe(ask, answer, noted));
    server.listen(port, '0.0.0.0', resolve);
    servers.set(port, server satisfies Server);
  }
  await promise;
  return 'listening';
}

/** Answers with what a proxy adds, after so many milliseconds as the parameter `ms` says. */
function describe(ask: IncomingMessage, answer: ServerResponse, noted: Set<string>): void {
  noted.add(ask.socket.remoteAddress ?? '');
  const { pathname, searchParams } = new URL(ask.url ?? '/', 'http://peer');
  const { host, 'x-forwarded-for': client, 'x-forwarded-proto': protocol, 'x-real-ip': real } = ask.headers;
  const from = ask.socket.remoteAddress;
  if (paths.size < MOST_PATHS) paths.add(pathname);
  const text = JSON.stringify({ name, host, path: pathname, client, protocol, real, from });
  startTimer(() => answer.end(`${text}\n`), Number(searchParams.get('ms') ?? 0));
}

function serve(port: number, noted: Set<string>): (socket: Socket) => void {
  const sockets = accepted.get(port) ?? new Set();
  accepted.set(port, sockets);
  return (socket) => {
    const address = socket.remoteAddress ?? '';
    noted.add(address);
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.write(`${name} ${address}\n`);
    createInterface({ input: socket })
      .on('line', (line) => socket.write(`${name} ${line}\n`))
      .on('error', () => undefined);
  };
}

async function openOne(id: string, host: string, port: number): Promise<string> {
  const socket = createConnection({ host, port });
  socket.on('error', () => undefined);
  open.set(id, socket);
  return await nextLine(socket);
}

async function askOnce(host: string, port: number): Promise<string> {
  const socket = createConnection({ host, port });
  socket.on('error', () => undefined);
  const heard = await nextLine(socket);
  socket.destroy();
  return heard;
}

async function talk(host: string, port: number, count: number): Promise<readonly string[]> {
  const answers: string[] = [];
  let left = count;
  const talker = async (): Promise<void> => {
    while (left-- > 0) {
      const socket = createConnection({ host, port });
      socket.on('error', () => undefined);
      const first = await nextLine(socket);
      await systemClock.sleep(HOLD_MS);
      const heard = nextLine(socket);
      socket.write('again\n');
      answers.push(first.includes(' ') ? await heard : first);
      socket.destroy();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, talker));
  return answers;
}

/** Each time from a port of its own. */
async function askUdp(host: string, port: number, count: number): Promise<readonly string[]> {
  const answers: string[] = [];
  for (let asked = 0; asked < count; asked++) {
    const socket = createSocket('udp4');
    const { promise, resolve } = Promise.withResolvers<string>();
    const timer = startTimer(() => resolve('timeout'), ANSWER_MS);
    socket.on('message', (bytes) => resolve(bytes.toString())).on('error', () => resolve('error'));
    socket.send('hello', port, host);
    answers.push(await promise);
    timer.cancel();
    socket.close();
  }
  return answers;
}

function nextLine(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    const end = (what: string): void => {
      timer.cancel();
      socket.off('data', onData).off('error', onError).off('close', onClose);
      resolve(what);
    };
    const onData = (bytes: Buffer): void => end(bytes.toString().trim());
    const onError = (error: NodeJS.ErrnoException): void => end(error.code ?? error.message);
    const onClose = (): void => end('closed');
    const timer = startTimer(() => end('timeout'), ANSWER_MS);
    socket.on('data', onData).on('error', onError).on('close', onClose);
  });
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { order, ...what } = JSON.parse(line) as PeerOrder & { readonly order: number };
    void obey(what).then((result) => process.stdout.write(`${JSON.stringify({ order, result })}\n`));
  })
  // The parent is gone: so are its connections.
  .on('close', () => process.exit(0));
process.stdout.write(`${JSON.stringify({ order: 0, result: 'ready' })}\n`);
