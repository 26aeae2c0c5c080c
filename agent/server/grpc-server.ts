import { rmSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import {
  type Server,
  ServerCredentials,
  type ServiceDefinition,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { fileIdentity } from '../../runtime/file-identity.ts';
import type { Logger } from '../../runtime/log.ts';
import { AGENT_SERVICE, SOCKET_SERVICE } from '../api/service.ts';
import { type ConnectionLimits, createLimitedServer } from '../grpc/limited-server.ts';
import { listenForRoot } from './listen-for-root.ts';
import { closeToOthers, isServed, NEW_SUFFIX, publishSocket } from './unix-socket.ts';

/** A server that accepts calls. */
export type RunningServer = {
  readonly health: Pick<Health, 'setServing'>;
  /**
   * Looks at the socket's file, and puts it back when it was removed, replaced or opened to others; the calls in flight go on. One
   * on which another process serves stays. Returns whether it put it back. @throws the listener's and the file system's own error
   */
  ensureSocket(): Promise<boolean>;
  /**
   * Stops accepting, lets calls in flight finish, ends what still runs after `graceMs`, removes the socket. Idempotent.
   */
  drain(graceMs: number): Promise<void>;
};

/**
 * How long a connection may be without a call, milliseconds. The executables close theirs; one of a process that is
 * stopped or hangs would hold a descriptor for good. Keepalive is not needed: on this machine a peer's death closes its
 * sockets at once.
 */
const IDLE_MS = 5 * 60_000;

/** The same on TCP, where containers with uid 0 could hold all the connections that are allowed. */
const TCP_IDLE_MS = 30_000;

/** What peers of one address may hold at once. */
type PeerLimits = Omit<ConnectionLimits, 'idleMs'> & {
  /** Most calls in flight. A peer may end a stream and begin the next one while the call of the first still runs. */
  readonly calls: number;
};

/** Only root opens the unix socket. An executable makes one call. A GC of a full node names a thousand attachments; a kubelet starts some hundred Pods at once. */
const SOCKET_LIMITS: PeerLimits = { requestBytes: 1 << 20, streams: 64, calls: 512 };
/**
 * All connections together hold at most 64 MiB of requests; the agent's memory limit is 320 MiB. The calls are counted
 * apart: whoever connects here takes no place of the runtime's executables.
 */
const TCP_LIMITS: PeerLimits = { requestBytes: 1 << 17, streams: 8, calls: 128 };
const TCP_CONNECTIONS = 64;

/** How long a stream's end may take to be read: a watcher that is stopped must not delay the shutdown of the agent. */
const STREAM_END_MS = 500;

/** The addresses to serve on. */
type GrpcAddress = {
  readonly socketPath: string;
  /** A TCP address for root, and what reports the connections of others. */
  readonly tcp?: { readonly address: string; readonly log: Logger; readonly clock: Pick<Clock, 'monotonicMs'> };
  /** How long a connection may be without a call, milliseconds; default five minutes. */
  readonly idleMs?: number;
};

/** A service that is offered on the unix socket only, which only root may open. */
export type LocalService = {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
  /** Ends its streams; a server with an open stream does not shut down. */
  close(): void;
};

/**
 * Serves the agent's service and the health service on a unix socket that only root may open, and on `tcp` when
 * that is set (confs of the product name nothing else), to root as well. Health is NOT_SERVING until set otherwise.
 * @param local Service that is not offered on `tcp`.
 * @throws the listener's own error.
 */
export async function serveGrpc(
  implementation: UntypedServiceImplementation,
  { socketPath, tcp, idleMs = IDLE_MS }: GrpcAddress,
  local?: LocalService,
): Promise<RunningServer> {
  const health = createHealth();
  const createServer = (
    service: object,
    { requestBytes, streams, calls }: PeerLimits,
    connectionIdleMs: number,
  ): CountedServer => {
    const inFlight = countInFlight(implementation, calls);
    const server = createLimitedServer({ requestBytes, streams, idleMs: connectionIdleMs });
    server.addService(service as ServiceDefinition, inFlight.implementation);
    server.addService(health.definition, health.implementation);
    return { server, idle: inFlight.idle };
  };
  const socketServer = createServer(SOCKET_SERVICE, SOCKET_LIMITS, idleMs);
  const { server } = socketServer;
  if (local !== undefined) server.addService(local.definition, local.implementation);
  const publish = () => publishSocket(socketPath, (temporary) => bind(server, `unix:${temporary}`));
  await publish();
  let identity = fileIdentity(socketPath);
  const servers = [socketServer];
  let stopListening = (): void => undefined;
  if (tcp !== undefined) {
    // A server of its own: what is not registered there cannot be called there, whatever a peer claims to be.
    const tcpServer = createServer(AGENT_SERVICE, TCP_LIMITS, Math.min(idleMs, TCP_IDLE_MS));
    const { address, log, clock } = tcp;
    const options = { address, log, connections: TCP_CONNECTIONS, monotonicMs: () => clock.monotonicMs() };
    stopListening = await listenForRoot(tcpServer.server, options);
    servers.push(tcpServer);
  }
  return {
    health,
    ensureSocket: async () => {
      if (fileIdentity(socketPath) === identity) {
        closeToOthers(socketPath);
        return false;
      }
      if (await isServed(socketPath)) return false;
      // The library binds a name once: the first listener has lost its file anyway.
      server.unbind(`unix:${socketPath}${NEW_SUFFIX}`);
      await publish();
      identity = fileIdentity(socketPath);
      return true;
    },
    drain: async (graceMs) => {
      stopListening();
      health.setServing(false);
      health.close();
      local?.close();
      // A later agent may have put its own socket there already.
      if (identity !== undefined && fileIdentity(socketPath) === identity) rmSync(socketPath, { force: true });
      await Promise.all(servers.map((each) => shutdown(each.server, graceMs, each.idle())));
    },
  };
}

async function bind(server: Server, address: string): Promise<void> {
  const bound = Promise.withResolvers<void>();
  server.bindAsync(address, ServerCredentials.createInsecure(), (error) =>
    error === null ? bound.resolve() : bound.reject(error),
  );
  await bound.promise;
}

/** Lets calls finish; what is open after that is a stream that its reader does not read. */
async function shutdown(server: Server, graceMs: number, idle: Promise<void>): Promise<void> {
  const isOver = new AbortController();
  const over = Promise.withResolvers<void>();
  server.tryShutdown(() => over.resolve());
  const timeLimit = async (): Promise<void> => {
    const wait = (ms: number) => systemClock.sleep(ms, isOver.signal).catch(() => {});
    await Promise.race([wait(graceMs), idle.then(() => wait(Math.min(STREAM_END_MS, graceMs)))]);
  };
  await Promise.race([over.promise, timeLimit()]);
  isOver.abort();
  server.forceShutdown();
}

/** A server, and when it has no call in flight. */
type CountedServer = { readonly server: Server; idle(): Promise<void> };

/** Counts unary calls that have begun and are not answered. */
type InFlight = {
  /** The same handlers, counted. */
  readonly implementation: UntypedServiceImplementation;
  /** Resolves when no call is in flight. */
  idle(): Promise<void>;
};

type UnaryHandler = (call: unknown, reply: sendUnaryData<unknown>) => void;

/** Wraps the handlers of a service whose methods are all unary, to count its calls and to refuse too many. */
function countInFlight(implementation: UntypedServiceImplementation, maxCalls: number): InFlight {
  let count = 0;
  let waiting: (() => void)[] = [];
  const ended = (): void => {
    count--;
    if (count > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  const counted = Object.entries(implementation).map(([name, handler]) => {
    const run: UnaryHandler = (call, reply) => {
      if (count >= maxCalls) {
        reply({ code: status.RESOURCE_EXHAUSTED, details: `${maxCalls} calls are in flight; try again` });
        return;
      }
      count++;
      // The table of methods says that it is unary; the library's own type covers streams as well.
      (handler as UnaryHandler)(call, (...answer) => {
        reply(...answer);
        ended();
      });
    };
    return [name, run];
  });
  return {
    implementation: Object.fromEntries(counted) as UntypedServiceImplementation,
    idle: async () => {
      if (count > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

/**
 * Turns of the event loop until the end of a connection is known as the end of its calls, and one more. The first turn
 * ends the phase in which this process is, the second reads the socket, the others end session and stream of HTTP/2.
 */
const TURNS = 5;

/** Resolves when input that the kernel has by now was read: a caller that hung up before is known to be gone. */
export async function readPendingInput(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await setImmediate();
}

/**
 * grpc.health.v1.Health, by hand: one text in, one number out.
 * HealthCheckRequest { string service = 1; }   HealthCheckResponse { ServingStatus status = 1; }
 * @see https://github.com/grpc/grpc/blob/master/doc/health-checking.md
 */
const SERVING = 1;
const NOT_SERVING = 2;
const TAG_STATUS = 0x08;

type Status = typeof SERVING | typeof NOT_SERVING;

/** The health service: what a gRPC server registers, and the switch of its status. */
type Health = {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
  setServing(serving: boolean): void;
  /**
   * Ends the streams of all watchers; a server with an open stream does not shut down. Later watchers get one answer.
   */
  close(): void;
};

type Watcher = { write(status: Status): boolean; end(): void; on(event: 'cancelled', run: () => void): void };

/** Creates a health service that answers NOT_SERVING until set otherwise; one status for every service name. */
function createHealth(): Health {
  let status: Status = NOT_SERVING;
  const watchers = new Set<Watcher>();
  let isClosed = false;
  const codec = {
    requestSerialize: (bytes: Buffer) => bytes,
    // The name asked for does not matter: this process has one service.
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (value: Status) => Buffer.from([TAG_STATUS, value]),
    responseDeserialize: (bytes: Buffer) => bytes[1],
    requestStream: false,
  } as const;
  return {
    definition: {
      check: { ...codec, path: '/grpc.health.v1.Health/Check', responseStream: false },
      watch: { ...codec, path: '/grpc.health.v1.Health/Watch', responseStream: true },
    },
    implementation: {
      check: (_call: unknown, reply: (error: null, value: Status) => void) => reply(null, status),
      watch: (call: Watcher) => {
        call.write(status);
        if (isClosed) return call.end();
        watchers.add(call);
        call.on('cancelled', () => watchers.delete(call));
      },
    },
    setServing: (serving) => {
      const next = serving ? SERVING : NOT_SERVING;
      if (next === status) return;
      status = next;
      for (const watcher of watchers) watcher.write(status);
    },
    close: () => {
      isClosed = true;
      for (const watcher of watchers) watcher.end();
      watchers.clear();
    },
  };
}
