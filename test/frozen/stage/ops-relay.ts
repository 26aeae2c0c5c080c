import {
  Client,
  type ClientReadableStream,
  credentials,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
  type UntypedHandleCall,
} from '@grpc/grpc-js';

/** One call of the agent's service for operators, as bytes: neither side's codec is used. */
export type RelayedCall = { readonly path: string; readonly request: Buffer; readonly replies: readonly Buffer[] };

/** A unix socket that answers calls of the service, and remembers them. */
type OpsRelay = { readonly calls: readonly RelayedCall[]; close(): void };

/** Answers a call: writes its replies and ends. */
type Answer = (path: string, request: Buffer, write: (reply: Buffer) => void, signal: AbortSignal) => Promise<void>;

const same = (bytes: Buffer): Buffer => bytes;

/** Passes calls on to the agent at `target`. The caller closes it. */
export async function openOpsRelay(socketPath: string, target: string, paths: readonly string[]): Promise<OpsRelay> {
  const client = new Client(`unix:${target}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const relay = await serve(socketPath, paths, async (path, request, write, signal) => {
    const stream: ClientReadableStream<Buffer> = client.makeServerStreamRequest(path, same, same, request);
    signal.addEventListener('abort', () => stream.cancel(), { once: true });
    for await (const reply of stream) write(reply as Buffer);
  });
  return {
    calls: relay.calls,
    close: () => {
      relay.close();
      client.close();
    },
  };
}

/** Answers the calls of each path one after the other as a recorded agent did. The caller closes it. */
export function openReplayedOps(socketPath: string, recorded: readonly RelayedCall[]): Promise<OpsRelay> {
  const left = Map.groupBy(recorded, ({ path }) => path);
  return serve(socketPath, [...left.keys()], async (path, _request, write) => {
    for (const reply of left.get(path)?.shift()?.replies ?? []) write(reply);
  });
}

/** Sends a recorded request and returns the first reply. */
export async function sendRequest(target: string, { path, request }: RelayedCall): Promise<Buffer> {
  const client = new Client(`unix:${target}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  try {
    return await new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, same, same, request, (error, reply) =>
        error === null && reply !== undefined ? resolve(reply) : reject(error),
      );
    });
  } finally {
    client.close();
  }
}

async function serve(socketPath: string, paths: readonly string[], answer: Answer): Promise<OpsRelay> {
  const calls: RelayedCall[] = [];
  const server = new Server();
  const codec = {
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
  for (const path of paths) {
    const definition: ServiceDefinition = { call: { ...codec, path, requestStream: true, responseStream: true } };
    const call: UntypedHandleCall = (stream: ServerDuplexStream<Buffer, Buffer>) => {
      const gone = new AbortController();
      stream.on('cancelled', () => gone.abort());
      stream.once('data', (request: Buffer) => {
        const replies: Buffer[] = [];
        calls.push({ path, request, replies });
        const write = (reply: Buffer): void => {
          replies.push(reply);
          stream.write(reply);
        };
        answer(path, request, write, gone.signal).then(
          () => stream.end(),
          () => stream.end(),
        );
      });
    };
    server.addService(definition, { call });
  }
  await new Promise<void>((resolve, reject) => {
    const bound = (error: Error | null): void => (error === null ? resolve() : reject(error));
    server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), bound);
  });
  return { calls, close: () => server.forceShutdown() };
}
