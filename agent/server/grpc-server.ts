import { lstatSync, rmSync } from 'node:fs';
import { Server, ServerCredentials, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { AGENT_SERVICE } from '../api/service.ts';
import { createHealth, type Health } from './health.ts';
import { publishSocket } from './unix-socket.ts';

/** A server that accepts calls. */
export type RunningServer = {
  readonly health: Health;
  /** Stops accepting, lets calls in flight finish, ends what still runs after `graceMs`, removes the socket. Idempotent. */
  drain(graceMs: number): Promise<void>;
};

/**
 * A connection without a call is closed after this. The executables close theirs; one that is stopped or hangs would keep
 * a descriptor for good. Keepalive is not needed: on this machine a peer's death closes its sockets at once.
 */
const IDLE_MS = 5 * 60_000;

/** Where to serve. */
export type GrpcAddress = {
  readonly socketPath: string;
  readonly tcpAddress?: string;
  /** How long a connection may be without a call; default five minutes. */
  readonly idleMs?: number;
};

/**
 * Serves the agent's service and the health service on a unix socket that only root may open, and on `tcpAddress` when
 * told so (the product's executables know no other way). Health says NOT_SERVING until told otherwise.
 * @throws the listener's own error.
 */
export async function serveGrpc(
  implementation: UntypedServiceImplementation,
  { socketPath, tcpAddress, idleMs = IDLE_MS }: GrpcAddress,
): Promise<RunningServer> {
  const server = new Server({ 'grpc.max_receive_message_length': 4 << 20, 'grpc.max_connection_idle_ms': idleMs });
  const health = createHealth();
  server.addService(AGENT_SERVICE as ServiceDefinition, implementation);
  server.addService(health.definition, health.implementation);
  await publishSocket(socketPath, (temporary) => bind(server, `unix:${temporary}`));
  const inode = lstatSync(socketPath).ino;
  if (tcpAddress !== undefined) await bind(server, tcpAddress);
  return {
    health,
    drain: async (graceMs) => {
      health.setServing(false);
      health.close();
      // A successor may have put its own socket there already.
      if (lstatSync(socketPath, { throwIfNoEntry: false })?.ino === inode) rmSync(socketPath, { force: true });
      await shutdown(server, graceMs);
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

async function shutdown(server: Server, graceMs: number): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    server.forceShutdown();
    over.resolve();
  }, graceMs);
  server.tryShutdown(() => over.resolve());
  await over.promise;
  clearTimeout(timer);
}
