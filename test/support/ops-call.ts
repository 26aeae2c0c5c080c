import { Client, type ClientReadableStream, credentials } from '@grpc/grpc-js';
import type { AgentEvent } from '../../agent/api/ops-messages.ts';
import { OPS_SERVICE, type OpsMethod, type OpsReplyOf, type OpsRequestInitOf } from '../../agent/api/ops-service.ts';

/** Calls the agent's service Ops directly, past the CLI. The caller closes it. */
export type OpsCaller = {
  /** @throws the gRPC error, the deadline included */
  call<M extends Exclude<OpsMethod, 'watch'>>(method: M, request: OpsRequestInitOf<M>): Promise<OpsReplyOf<M>>;
  /** Watches from the moment on at which this resolves. */
  watch(request: OpsRequestInitOf<'watch'>): Promise<OpsWatch>;
  close(): void;
};

/** A watch under way. */
export type OpsWatch = {
  /** What was told so far. */
  readonly events: readonly AgentEvent[];
  /** Resolves with the gRPC status code when it ends. */
  readonly ended: Promise<number>;
  /** Stops reading, as a terminal does that is held. */
  pause(): void;
  resume(): void;
  cancel(): void;
};

const TIMEOUT_MS = 60_000;

/** Opens a client of the agent: 'unix:<path>' or '<address>:<port>'. */
export function openOpsCaller(target: string): OpsCaller {
  const client = new Client(target, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  return {
    call: (method, request) =>
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = OPS_SERVICE[method];
        client.makeUnaryRequest(
          path,
          requestSerialize as (message: typeof request) => Buffer,
          responseDeserialize as (bytes: Buffer) => OpsReplyOf<typeof method>,
          request,
          { deadline: Date.now() + TIMEOUT_MS },
          (error, reply) => (error === null && reply !== undefined ? resolve(reply) : reject(error)),
        );
      }),
    watch: async (request) => {
      const { path, requestSerialize, responseDeserialize } = OPS_SERVICE.watch;
      return await watchOf(client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request));
    },
    close: () => client.close(),
  };
}

async function watchOf(stream: ClientReadableStream<AgentEvent>): Promise<OpsWatch> {
  const events: AgentEvent[] = [];
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<number>();
  stream.on('data', (event: AgentEvent) => events.push(event));
  stream.on('metadata', () => begun.resolve());
  // The status tells the same.
  stream.on('error', () => {});
  stream.on('status', ({ code }) => {
    ended.resolve(code);
    begun.resolve();
  });
  await begun.promise;
  return {
    events,
    ended: ended.promise,
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    cancel: () => stream.cancel(),
  };
}
