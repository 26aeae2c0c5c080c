import { chmodSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Socket, type Server as SocketServer } from 'node:net';
import { basename, join } from 'node:path';
import {
  ServerCredentials,
  type ServerWritableStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { fileIdentity } from '../../runtime/file-identity.ts';
import { decodeMessage, encodeMessage, type InitOf, type MessageOf, type MessageTable } from '../api/codec.ts';
import { createLimitedServer } from '../grpc/limited-server.ts';
import type { Device } from './decide-devices.ts';
import { DEVICE_PLUGIN_CHOICES } from './kubelet-client.ts';
import {
  ALLOCATE_REQUEST,
  ALLOCATE_RESPONSE,
  DEVICE_PLUGIN_OPTIONS,
  EMPTY,
  LIST_AND_WATCH_RESPONSE,
} from './kubelet-messages.ts';
import { rewriteAuthority } from './rewrite-authority.ts';

/** The gRPC endpoint at which kubelet asks for our devices. */
export type PluginEndpoint = {
  /**
   * Listens; does so again when the socket's file was removed, as kubelet does at its start. Idempotent.
   * @throws the file system's or the listener's own error.
   */
  serve(): Promise<void>;
  /** Sends the devices to all watchers, also to those that come later. */
  sendDevices(devices: readonly Device[]): void;
  /** True while kubelet watches the devices. */
  isWatched(): boolean;
  /**
   * Turns the rewriting of requests of kubelets before 1.26 on or off, from the next connection on. @see rewriteAuthority
   */
  setAuthorityRewriting(isEnabled: boolean): void;
  /** Ends all open watches, which are those of earlier kubelets. */
  endWatches(): void;
  close(): void;
};

type WatchStream = ServerWritableStream<unknown, InitOf<typeof LIST_AND_WATCH_RESPONSE>>;
type Reply<T> = (error: null, answer: T) => void;
type Unary<Q, A> = (call: { readonly request: Q }, reply: Reply<A>) => void;

/** The folder that every kubelet on Linux uses, whatever its root folder. */
const KUBELET_FOLDER = '/var/lib/kubelet/device-plugins';
/**
 * A kubelet has one connection with one watch, and asks for the devices of one container at a time: some kB. After its
 * restarts the connections of earlier ones end. All connections together hold at most 32 MiB of requests.
 */
const LIMITS = { requestBytes: 1 << 17, streams: 8, idleMs: 5 * 60_000 } as const;
const MAX_CONNECTIONS = 32;
const NEW_SUFFIX = '.new';
const HEALTHY = 'Healthy';
const UNHEALTHY = 'Unhealthy';

/**
 * Creates an endpoint on a socket that only root may open; it does not listen yet. It has one gRPC server for its whole
 * life, whatever happens to the socket's file.
 * @param changed Called when a watch begins or ends.
 */
export function openPluginEndpoint(path: string, changed: () => void): PluginEndpoint {
  let message: InitOf<typeof LIST_AND_WATCH_RESPONSE> = { devices: [] };
  const watches = new Set<Watch>();
  const server = createLimitedServer(LIMITS);
  server.addService(
    DEVICE_PLUGIN_SERVICE,
    implementationOf((stream) => {
      const watch = openWatch(stream, () => {
        if (watches.delete(watch)) changed();
      });
      watches.add(watch);
      watch.send(message);
      changed();
    }),
  );
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  let isRewriting = false;
  const paths = [path, join(KUBELET_FOLDER, basename(path))];
  const accept = (connection: Socket): void =>
    injector.injectConnection(isRewriting ? rewriteAuthority(connection, paths) : connection);
  let listening: { readonly socket: SocketServer; readonly identity: string | undefined } | undefined;
  const endWatches = (): void => {
    for (const watch of watches) watch.end();
    watches.clear();
  };
  return {
    serve: async () => {
      if (listening?.identity !== undefined && listening.identity === fileIdentity(path)) return;
      // Closed before another one listens: closing unlinks the name that was bound.
      listening?.socket.close();
      listening = undefined;
      const socket = createServer(accept);
      socket.maxConnections = MAX_CONNECTIONS;
      listening = { socket, identity: await publish(socket, path) };
    },
    sendDevices: (devices) => {
      message = { devices: devices.map(({ id, isHealthy }) => ({ id, health: isHealthy ? HEALTHY : UNHEALTHY })) };
      for (const watch of watches) watch.send(message);
    },
    isWatched: () => watches.size > 0,
    setAuthorityRewriting: (next) => {
      isRewriting = next;
    },
    endWatches,
    close: () => {
      endWatches();
      if (listening !== undefined && listening.identity === fileIdentity(path)) rmSync(path, { force: true });
      listening?.socket.close();
      injector.destroy();
      server.forceShutdown();
    },
  };
}

/**
 * Gives the socket its name only when it is ready, so that no connection is refused. Returns the identity of its file.
 */
async function publish(socket: SocketServer, path: string): Promise<string | undefined> {
  const temporary = path + NEW_SUFFIX;
  rmSync(temporary, { force: true });
  const bound = Promise.withResolvers<void>();
  socket.once('error', bound.reject);
  socket.listen(temporary, bound.resolve);
  await bound.promise;
  // A connection that breaks while it is accepted must not end the agent.
  socket.on('error', () => {});
  try {
    chmodSync(temporary, 0o600);
    renameSync(temporary, path);
  } catch (error) {
    socket.close();
    throw error;
  }
  return fileIdentity(path);
}

type Watch = { send(message: InitOf<typeof LIST_AND_WATCH_RESPONSE>): void; end(): void };

/** Buffers only the last message for a watcher that does not read: a stopped kubelet must not cost memory. */
function openWatch(stream: WatchStream, over: () => void): Watch {
  let isFull = false;
  let pending: InitOf<typeof LIST_AND_WATCH_RESPONSE> | undefined;
  const send = (message: InitOf<typeof LIST_AND_WATCH_RESPONSE>): void => {
    if (isFull) pending = message;
    else isFull = !stream.write(message);
  };
  stream.on('drain', () => {
    isFull = false;
    const next = pending;
    pending = undefined;
    if (next !== undefined) send(next);
  });
  for (const event of ['cancelled', 'close', 'error'] as const) stream.on(event, over);
  return { send, end: () => stream.end() };
}

function implementationOf(watch: (stream: WatchStream) => void): UntypedServiceImplementation {
  // A device is the right to an address and no object: the address itself comes with the Pod's ADD.
  const allocate: Unary<MessageOf<typeof ALLOCATE_REQUEST>, InitOf<typeof ALLOCATE_RESPONSE>> = ({ request }, reply) =>
    reply(null, { containerResponses: request.containerRequests.map(() => ({})) });
  return {
    getDevicePluginOptions: (_call: unknown, reply: Reply<object>) => reply(null, DEVICE_PLUGIN_CHOICES),
    listAndWatch: watch,
    allocate,
    preStartContainer: (_call: unknown, reply: Reply<object>) => reply(null, {}),
  };
}

/** `service DevicePlugin` in the shape that the gRPC library requires. */
const DEVICE_PLUGIN_SERVICE: ServiceDefinition = {
  getDevicePluginOptions: call('GetDevicePluginOptions', EMPTY, DEVICE_PLUGIN_OPTIONS),
  listAndWatch: { ...call('ListAndWatch', EMPTY, LIST_AND_WATCH_RESPONSE), responseStream: true },
  allocate: call('Allocate', ALLOCATE_REQUEST, ALLOCATE_RESPONSE),
  preStartContainer: call('PreStartContainer', EMPTY, EMPTY),
};

function call(name: string, request: MessageTable, response: MessageTable): ServiceDefinition[string] {
  return {
    path: `/v1beta1.DevicePlugin/${name}`,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message: InitOf<MessageTable>) => encodeMessage(request, message),
    requestDeserialize: (bytes: Buffer) => decodeMessage(request, bytes),
    responseSerialize: (message: InitOf<MessageTable>) => encodeMessage(response, message),
    responseDeserialize: (bytes: Buffer) => decodeMessage(response, bytes),
  };
}
