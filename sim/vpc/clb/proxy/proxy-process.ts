// The proxy of a load balancer of layer 7; runs as a child process in the namespace of the load balancer (see
// proxy-namespace.ts). Takes a ProxyOrder a line on standard input and prints a ProxyAnswer a line when requests follow it. A
// table ends no connection of a client but those of a listener that goes. Nothing is asked of a target twice.
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { createInterface } from 'node:readline';
import { createSecureContext, type SecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls';
import { startTimer } from '../../../../runtime/clock.ts';
import type {
  ProxyCertificate,
  ProxyListener,
  ProxyRedirect,
  ProxyRule,
  ProxyTable,
} from '../../api/model/clb/proxy-table.ts';
import { slotsOf, type WeightedTarget } from '../slots.ts';
import { nextSourcePort } from '../source-port.ts';
import { expressionOf, matchDomain, matchRule } from './match-rule.ts';
import type { ProxyAnswer, ProxyOrder } from './proxy-order.ts';

const MOST_CONNECTIONS = 5_000;
const MOST_BODY = 60 * 2 ** 20;
const CONNECT_MS = 4_000;
const ANSWER_MS = 60_000;
const KEEP_ALIVE_MS = 75_000;
/** Headers that are about one connection alone. */
const HOP_HEADERS = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'upgrade'];

/** A listener that listens. */
type Door = {
  readonly server: Server | TlsServer;
  listener: ProxyListener;
  contexts: ReadonlyMap<string, SecureContext>;
};
/** A request that a target has and has not answered to its end. */
type Asked = { readonly ruleId: string; readonly key: string; cut(): void };

let vip = '';
let usable: ProxyOrder['usable'] = {};
const doors = new Map<string, Door>();
const asked = new Set<Asked>();
/** How many requests of a rule chose a target. */
const turns = new Map<string, number>();

async function follow(table: ProxyTable): Promise<void> {
  // Whatever can fail comes first: then nothing has changed.
  const contexts = new Map(table.listeners.map((listener) => [listener.listenerId, contextsOf(listener)]));
  for (const { url } of table.listeners.flatMap(({ rules: own }) => own)) if (url.startsWith('~')) expressionOf(url);
  vip = table.vip;
  const names = new Set(table.listeners.map(nameOf));
  for (const [name, { server }] of doors) {
    if (names.has(name)) continue;
    doors.delete(name);
    server.close();
    server.closeAllConnections();
  }
  for (const listener of table.listeners) await open(listener, contexts.get(listener.listenerId) ?? new Map());
  const rules = new Map(table.listeners.flatMap((one) => one.rules).map((rule) => [rule.ruleId, rule]));
  for (const one of asked) if (rules.get(one.ruleId)?.targets.some((t) => keyOf(t) === one.key) !== true) one.cut();
  for (const ruleId of turns.keys()) if (!rules.has(ruleId)) turns.delete(ruleId);
}

async function open(listener: ProxyListener, contexts: Door['contexts']): Promise<void> {
  const before = doors.get(nameOf(listener));
  if (before !== undefined) {
    before.listener = listener;
    before.contexts = contexts;
    if (listener.protocol === 'HTTPS')
      (before.server as TlsServer).setSecureContext(tlsOf(listener.defaultCertificate));
    return;
  }
  const door: Door = { server: serverOf(listener, () => door), listener, contexts };
  door.server.maxConnections = MOST_CONNECTIONS;
  door.server.keepAliveTimeout = KEEP_ALIVE_MS;
  door.server.on('request', (ask: IncomingMessage, answer: ServerResponse) => serve(door, ask, answer));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  door.server.once('error', reject).listen(listener.port, vip, resolve);
  await promise;
  door.server.off('error', reject).on('error', () => undefined);
  doors.set(nameOf(listener), door);
}

function serverOf(listener: ProxyListener, doorOf: () => Door): Server | TlsServer {
  if (listener.protocol === 'HTTP') return createServer();
  const server = createTlsServer({
    ...tlsOf(listener.defaultCertificate),
    // Asked of every client, since a server cannot begin to ask later; who needs one is judged by request.
    requestCert: true,
    rejectUnauthorized: false,
    SNICallback: (name, done) => {
      const { contexts } = doorOf();
      const domain = matchDomain(new Set(contexts.keys()), name.toLowerCase());
      done(null, domain === undefined ? undefined : contexts.get(domain));
    },
  });
  return server.on('tlsClientError', (_, socket) => socket.destroy());
}

function contextsOf({ protocol, certificates = {}, defaultCertificate }: ProxyListener): Door['contexts'] {
  if (protocol === 'HTTP') return new Map();
  createSecureContext(tlsOf(defaultCertificate));
  const entries = Object.entries(certificates);
  return new Map(entries.map(([domain, one]) => [domain.toLowerCase(), createSecureContext(tlsOf(one))]));
}

function tlsOf(certificate: ProxyCertificate | undefined): SecureContextOptions {
  if (certificate === undefined) return {};
  const { cert, key, clientCa } = certificate;
  return { cert, key, ...(clientCa === undefined ? {} : { ca: clientCa }) };
}

function serve({ listener }: Door, ask: IncomingMessage, answer: ServerResponse): void {
  const found = decide(listener, ask);
  if (typeof found === 'number') say(answer, found);
  else if ('location' in found) say(answer, found.code, found.location);
  else forward(listener, found.rule, found.target, ask, answer);
}

type Redirected = { readonly code: number; readonly location: string };
type Chosen = { readonly rule: ProxyRule; readonly target: WeightedTarget };

/** Where a request goes; a number is the code of an answer of the load balancer itself. */
function decide(listener: ProxyListener, ask: IncomingMessage): number | Redirected | Chosen {
  if (lacksCertificate(listener, ask)) return 400;
  const host = (ask.headers.host ?? '').replace(/:\d+$/, '');
  const url = ask.url ?? '/';
  const rule = matchRule(listener.rules, vip, host, url.split('?', 1)[0] ?? '/');
  if (rule === undefined) return 404;
  if (rule.redirect !== undefined) return { code: rule.redirect.code, location: locationOf(rule.redirect, host, url) };
  if (Number(ask.headers['content-length'] ?? 0) > MOST_BODY) return 413;
  const target = choose(rule, ask.socket.remoteAddress ?? '');
  return target === undefined ? 502 : { rule, target };
}

function lacksCertificate({ protocol, certificates = {}, defaultCertificate }: ProxyListener, ask: IncomingMessage) {
  if (protocol === 'HTTP') return false;
  const { servername, authorized } = ask.socket as TLSSocket & { servername?: string | false };
  const name = typeof servername === 'string' ? servername.toLowerCase() : '';
  const domain = matchDomain(new Set(Object.keys(certificates).map((one) => one.toLowerCase())), name);
  const found = Object.entries(certificates).find(([one]) => one.toLowerCase() === domain)?.[1];
  return (found ?? defaultCertificate)?.clientCa !== undefined && !authorized;
}

function locationOf({ protocol, port, domain, url }: ProxyRedirect, host: string, asIs: string): string {
  const name = domain === '' || domain.includes('*') ? host : domain;
  const suffix = port === (protocol === 'HTTPS' ? 443 : 80) ? '' : `:${port}`;
  return `${protocol.toLowerCase()}://${name}${suffix}${url ?? asIs}`;
}

function choose({ ruleId, targets, isSticky }: ProxyRule, client: string): WeightedTarget | undefined {
  const slots = slotsOf(targets.filter((target) => usable[ruleId]?.includes(keyOf(target)) === true));
  const turn = turns.get(ruleId) ?? 0;
  turns.set(ruleId, (turn + 1) % Number.MAX_SAFE_INTEGER);
  const place = isSticky === true ? [...client].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) >>> 0, 7) : turn;
  return slots[place % Math.max(1, slots.length)];
}

function forward(
  { protocol }: ProxyListener,
  { ruleId, answerMs = ANSWER_MS }: ProxyRule,
  target: WeightedTarget,
  ask: IncomingMessage,
  answer: ServerResponse,
): void {
  const client = ask.socket.remoteAddress ?? '';
  const before = ask.headers['x-forwarded-for'];
  const headers = {
    ...Object.fromEntries(Object.entries(ask.headers).filter(([name]) => !HOP_HEADERS.includes(name))),
    'x-forwarded-for': before === undefined ? client : `${before}, ${client}`,
    'x-forwarded-proto': protocol.toLowerCase(),
    'x-real-ip': client,
    connection: 'close',
  };
  const { method, url } = ask;
  const from = { localAddress: vip, localPort: nextSourcePort(), agent: false };
  const options = { host: target.ip, port: target.port, method, path: url, headers, ...from };
  let up: ClientRequest;
  try {
    up = request(options);
  } catch {
    // A path or a header that Node takes and does not send.
    say(answer, 400);
    return;
  }
  let code = 502;
  const fail = (): void => {
    if (answer.headersSent) answer.destroy();
    else say(answer, code);
  };
  const late = (): void => {
    code = 504;
    up.destroy();
    fail();
  };
  let timer = startTimer(late, Math.min(CONNECT_MS, answerMs));
  const one: Asked = {
    ruleId,
    key: keyOf(target),
    cut: () => {
      up.destroy();
      fail();
    },
  };
  asked.add(one);
  up.on('socket', (socket) =>
    socket.once('connect', () => {
      timer.cancel();
      timer = startTimer(late, answerMs);
    }),
  );
  up.on('error', fail).on('close', () => {
    timer.cancel();
    asked.delete(one);
  });
  up.on('response', (reply) => {
    timer.cancel();
    up.setTimeout(answerMs, one.cut);
    const own = Object.entries(reply.headers).filter(([name]) => !HOP_HEADERS.includes(name));
    answer.writeHead(reply.statusCode ?? 502, Object.fromEntries(own));
    reply.on('error', fail).pipe(answer);
  });
  let bytes = 0;
  ask.on('data', (part: Buffer) => {
    bytes += part.length;
    if (bytes <= MOST_BODY) return;
    code = 413;
    one.cut();
  });
  ask.on('error', () => up.destroy()).pipe(up);
  answer.on('error', () => undefined).on('close', () => up.destroy());
}

/** An answer of the load balancer itself. */
function say(answer: ServerResponse, code: number, location?: string): void {
  if (answer.headersSent) return;
  answer
    .writeHead(code, { 'content-type': 'text/html', ...(location === undefined ? {} : { location }) })
    .end(`<h1>${code}</h1>\n`);
}

function nameOf({ listenerId, protocol, port }: ProxyListener): string {
  return `${listenerId} ${protocol} ${port}`;
}

function keyOf({ ip, port }: { readonly ip: string; readonly port: number }): string {
  return `${ip}:${port}`;
}

let work: Promise<void> = Promise.resolve();
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { order, table, usable: next } = JSON.parse(line) as ProxyOrder;
    work = work
      .then(() => (table === undefined ? undefined : follow(table)))
      .then(
        () => {
          usable = next;
          print({ order });
        },
        (error: Error) => print({ order, error: error.message }),
      );
  })
  // The parent is gone: so is its load balancer.
  .on('close', () => process.exit(0));
print({ order: 0 });

function print(answer: ProxyAnswer): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
