import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { startTimer } from './clock.ts';
import { type Connection, ConnectionTable } from './connection-table.ts';
import { isRecord } from './decode.ts';

/** Most requests of one connection that are not answered yet. The clients of our servers send one after the other. */
const MAX_PIPELINED = 4;
/**
 * Most bytes of answers that clients have not read yet, beside the newest answer. The answers that were begun first are
 * given up.
 */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/** A request and its answer. */
type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** That of the request at its beginning: Node.js takes it from a request that has ended. */
  readonly socket: Socket;
};

/** The connections of an HTTP server, and of each the requests whose answers were not written and read yet. */
export class HttpExchanges {
  readonly connections: ConnectionTable;
  readonly #readMs: number;
  readonly #open = new Map<Connection, Set<Exchange>>();
  #isEnding = false;

  /** @param readMs time limit until a client has read an answer, milliseconds */
  constructor(maxConnections: number, readMs: number) {
    this.#readMs = readMs;
    this.connections = new ConnectionTable(maxConnections, (connection) => this.#isWorking(connection));
  }

  /**
   * Begins an exchange. Returns what is to be called when the answer is written; undefined when the request is not answered,
   * because its client has sent too many at once, or is gone.
   */
  begin(request: IncomingMessage, response: ServerResponse): (() => void) | undefined {
    const { socket } = request;
    const connection = this.connections.of(socket);
    // Node.js emits all requests that it has read, also when the connection was closed meanwhile.
    if (connection === undefined) return undefined;
    const open = this.#open.get(connection) ?? new Set();
    if (open.size >= MAX_PIPELINED) {
      stopParsing(socket);
      this.connections.close(connection);
      return undefined;
    }
    const exchange = { request, response, socket };
    this.#open.set(connection, open.add(exchange));
    if (this.#isEnding) response.setHeader('connection', 'close');
    this.connections.touch(connection);
    response.once('close', () => {
      open.delete(exchange);
      if (open.size === 0) this.#open.delete(connection);
    });
    return () => this.#onAnswered(connection, response);
  }

  /** Ends each connection with its next answer. */
  endEach(): void {
    this.#isEnding = true;
    for (const exchanges of this.#open.values())
      for (const { response } of exchanges) if (!response.headersSent) response.setHeader('connection', 'close');
  }

  /** Bounds the time of an answer that was written, and the memory of all that are not read. */
  #onAnswered(connection: Connection, response: ServerResponse): void {
    if (response.closed || !response.writableEnded || response.writableFinished) return;
    const timer = startTimer(() => this.connections.close(connection), this.#readMs).unref();
    response.once('close', timer.cancel);
    this.#boundUnread(connection);
  }

  #boundUnread(newest: Connection): void {
    const unread = [...this.#open].flatMap(([connection, [first]]) =>
      first === undefined || connection === newest ? [] : [{ connection, bytes: first.socket.writableLength }],
    );
    let total = unread.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { connection, bytes } of unread) {
      if (total <= MAX_UNREAD_BYTES) return;
      if (bytes === 0) continue;
      this.connections.close(connection);
      total -= bytes;
    }
  }

  #isWorking(connection: Connection): boolean {
    for (const { request, response } of this.#open.get(connection) ?? [])
      if (request.complete && !response.writableEnded) return true;
    return false;
  }
}

/**
 * Ends the parsing of what was read of a connection that is being closed: some 2,000 requests in one read, which would cost
 * Node.js 12 µs each. Without this property of Node.js 26, nothing is saved. 2 is what an upgrade returns.
 * @see https://github.com/nodejs/node/blob/v26.x/lib/_http_server.js `parserOnIncoming`
 */
function stopParsing(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, 'parser');
  if (isRecord(parser) && typeof parser['onIncoming'] === 'function') Reflect.set(parser, 'onIncoming', () => 2);
}
