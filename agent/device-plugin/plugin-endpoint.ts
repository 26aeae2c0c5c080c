import { chmodSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Socket, type Server as SocketServer } from 'node:net';
import { basename, join } from 'node:path';
import { Server, ServerCredentials, type ServerWritableStream, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { InitOf, MessageOf } from '../api/codec.ts';
import type { Device } from './decide-devices.ts';
import { fileIdentity } from './file-identity.ts';
import {
  type ALLOCATE_REQUEST,
  type ALLOCATE_RESPONSE,
  DEVICE_PLUGIN_CHOICES,
  type LIST_AND_WATCH_RESPONSE,
} from './kubelet-messages.ts';
import { mendAuthority } from './path-authority.ts';
import { DEVICE_PLUGIN_SERVICE } from './plugin-service.ts';

/** Where kubelet asks for our devices. */
export type PluginEndpoint = {
  /** Listens, anew when the socket was taken away, as kubelet does when it starts. Idempotent. @throws the file system's or the listener's own error. */
  serve(): Promise<void>;
  /** Tells all who watch of the devices, and all who come later. */
  tell(devices: readonly Device[]): void;
  /** True while somebody watches the devices. */
  isWatched(): boolean;
  /** Lets a kubelet of before 1.26 through from the next connection on, or no longer. @see mendAuthority */
  mendsAuthority(isMending: boolean): void;
  /** Ends what kubelets that came before still watch. */
  endWatches(): void;
  close(): void;
};

type WatchStream = ServerWritableStream<unknown, InitOf<typeof LIST_AND_WATCH_RESPONSE>>;
type Reply<T> = (error: null, answer: T) => void;
type Unary<Q, A> = (call: { readonly request: Q }, reply: Reply<A>) => void;

/** Where every kubelet on Linux looks, whatever its root folder. */
const KUBELET_FOLDER = '/var/lib/kubelet/device-plugins';
const NEW_SUFFIX = '.new';
const HEALTHY = 'Healthy';
const UNHEALTHY = 'Unhealthy';

/**
 * Makes an endpoint on a socket that only root may open; nothing listens yet. One gRPC server for its life, whatever
 * becomes of its socket's file.
 * @param changed Called when somebody begins or ends to watch.
 */
export function openPluginEndpoint(path: string, changed: () => void): PluginEndpoint {
  let message: InitOf<typeof LIST_AND_WATCH_RESPONSE> = { devices: [] };
  const watches = new Set<Watch>();
  const server = new Server({ 'grpc.enable_channelz': 0 });
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
  let isMending = false;
  const paths = [path, join(KUBELET_FOLDER, basename(path))];
  const accept = (connection: Socket): void =>
    injector.injectConnection(isMending ? mendAuthority(connection, paths) : connection);
  let listening: { readonly socket: SocketServer; readonly identity: string | undefined } | undefined;
  const endWatches = (): void => {
    for (const watch of watches) watch.end();
    watches.clear();
  };
  return {
    serve: async () => {
      if (listening?.identity !== undefined && listening.identity === fileIdentity(path)) return;
      // Before another listens: closing unlinks the name that was bound.
      listening?.socket.close();
      listening = undefined;
      const socket = createServer(accept);
      listening = { socket, identity: await publish(socket, path) };
    },
    tell: (devices) => {
      message = { devices: devices.map(({ id, isHealthy }) => ({ id, health: isHealthy ? HEALTHY : UNHEALTHY })) };
      for (const watch of watches) watch.send(message);
    },
    isWatched: () => watches.size > 0,
    mendsAuthority: (next) => {
      isMending = next;
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

/** Gives the socket its name only when it is ready, so that nobody finds it refusing. Returns which file it is. */
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

/** Keeps the last message only for one who does not read: a kubelet that is stopped must not cost memory. */
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
  // A device is room for an address and no thing: the address itself comes with the Pod's ADD.
  const allocate: Unary<MessageOf<typeof ALLOCATE_REQUEST>, InitOf<typeof ALLOCATE_RESPONSE>> = ({ request }, reply) =>
    reply(null, { containerResponses: request.containerRequests.map(() => ({})) });
  return {
    getDevicePluginOptions: (_call: unknown, reply: Reply<object>) => reply(null, DEVICE_PLUGIN_CHOICES),
    listAndWatch: watch,
    allocate,
    preStartContainer: (_call: unknown, reply: Reply<object>) => reply(null, {}),
  };
}
