import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { decodeMessage, encodeMessage, type InitOf, type MessageTable } from '../../agent/api/codec.ts';
import type { AgentEvent } from '../../agent/api/ops-messages.ts';
import { OPS_METHODS, type OpsRequestInitOf } from '../../agent/api/ops-service.ts';
import type { MethodTable } from '../../agent/api/service.ts';
import { release } from '../../runtime/release.ts';
import { UserError } from '../../runtime/user-error.ts';
import { AGENT_LOG_HINT, noAgent, silentAgent, unreachable } from './agent-errors.ts';

/** Largest reply. A pool of 1,000 addresses is 100 kB; the flight recorder has its own limit. */
const RECEIVE_BYTES = 64 << 20;
/** @see grpc status codes */
const CANCELLED = 1;
const RESOURCE_EXHAUSTED = 8;
const DEADLINE_EXCEEDED = 4;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

/** A connection to the agent by the gRPC library. */
export type GrpcClient = {
  /** @throws UserError NO_AGENT, FORBIDDEN, REFUSED */
  unary<R>(method: MethodTable, request: object, timeoutMs: number): Promise<R>;
  watch(call: Omit<WatchCall, 'socket'>): AsyncIterable<AgentEvent>;
  close(): void;
};

/** Opens a connection by the gRPC library. To be imported only where its start, 60 ms of CPU time, is no matter. */
export function openGrpcClient(socket: string): GrpcClient {
  const client = new Client(`unix:${socket}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': RECEIVE_BYTES,
    // The value of the Host header: a socket's path is not a valid host name.
    'grpc.default_authority': 'localhost',
  });
  return {
    unary: (method, request, timeoutMs) => unary(client, method, request, { timeoutMs, socket }),
    watch: (call) => watch(client, { ...call, socket }),
    close: () => client.close(),
  };
}

type CallBounds = { readonly timeoutMs: number; readonly socket: string };

async function unary<R>(client: Client, method: MethodTable, request: object, bounds: CallBounds): Promise<R> {
  const answer = Promise.withResolvers<unknown>();
  client.makeUnaryRequest(
    method.path,
    (message: InitOf<MessageTable>) => encodeMessage(method.request, message),
    (bytes: Buffer): unknown => decodeMessage(method.reply, bytes),
    request as InitOf<MessageTable>,
    { deadline: Date.now() + bounds.timeoutMs },
    (error, reply) => (error === null ? answer.resolve(reply) : answer.reject(asUserError(error, method.path, bounds))),
  );
  // The codec has decoded it with the reply table of this method.
  return (await answer.promise) as R;
}

type WatchCall = {
  readonly kinds: readonly number[];
  readonly signal: AbortSignal;
  readonly onOpen: (() => void) | undefined;
  readonly socket: string;
};

async function* watch(client: Client, { kinds, signal, onOpen, socket }: WatchCall): AsyncGenerator<AgentEvent> {
  if (signal.aborted) return;
  const { path, request, reply } = OPS_METHODS.watch;
  const stream = client.makeServerStreamRequest(
    path,
    (message: OpsRequestInitOf<'watch'>) => encodeMessage(request, message),
    (bytes: Buffer) => decodeMessage(reply, bytes),
    { kinds, clientVersion: release },
  );
  // The loop below hears errors; after its end the stream still says that it was cancelled.
  stream.on('error', () => {});
  const cancel = () => stream.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  if (onOpen !== undefined) stream.once('metadata', onOpen);
  try {
    for await (const event of stream) yield event as AgentEvent;
    if (!signal.aborted) throw noAgent(`the agent on ${socket} ended the stream`);
  } catch (error) {
    if (signal.aborted) return;
    throw isServiceError(error) ? asUserError(error, path, { timeoutMs: 0, socket }) : error;
  } finally {
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'code' in error && 'details' in error && typeof error.code === 'number';
}

function asUserError(error: ServiceError, path: string, { timeoutMs, socket }: CallBounds): UserError {
  switch (error.code) {
    case UNIMPLEMENTED: {
      const next = 'update tke-eni-agent on this node to the release of this tool (tke-eni --version)';
      return new UserError('NO_AGENT', `the agent on ${socket} is too old for ${path}`, next, { cause: error });
    }
    case DEADLINE_EXCEEDED:
      return silentAgent(socket, timeoutMs, { cause: error });
    case UNAVAILABLE:
    case CANCELLED:
      return unreachable(socket, error.details, error);
    case RESOURCE_EXHAUSTED:
      return new UserError('REFUSED', `the agent on ${socket} is busy: ${error.details}`, 'try again', {
        cause: error,
      });
    default:
      return new UserError('REFUSED', `the agent on ${socket}: ${error.details}`, AGENT_LOG_HINT, { cause: error });
  }
}
