import { statSync } from 'node:fs';
import type { Client, ServiceError } from '@grpc/grpc-js';
import { decodeMessage, encodeMessage, type InitOf, type MessageTable } from '../../agent/api/codec.ts';
import type { AgentEvent } from '../../agent/api/ops-messages.ts';
import { OPS_METHODS, type OpsReplyOf, type OpsRequestInitOf } from '../../agent/api/ops-service.ts';
import {
  AGENT_METHODS,
  type AgentMethod,
  type MethodTable,
  type ReplyOf,
  type RequestInitOf,
} from '../../agent/api/service.ts';
import { release } from '../../runtime/release.ts';
import { CliError } from '../cli-error.ts';

/** Client of a running agent's API. The caller must close it. */
export type OpsClient = {
  pool(): Promise<OpsReplyOf<'pool'>>;
  summary(): Promise<OpsReplyOf<'summary'>>;
  /** Without `dryRun` the agent changes the kernel. */
  repair(request: { readonly dryRun: boolean }): Promise<OpsReplyOf<'repair'>>;
  recorder(pod: string): Promise<OpsReplyOf<'recorder'>>;
  /**
   * Streams events from now on, until `signal` aborts. `onOpen` runs when the agent has accepted the call.
   * @throws CliError NO_AGENT when the agent ends the stream
   */
  watch(kinds: readonly number[], signal: AbortSignal, onOpen?: () => void): AsyncIterable<AgentEvent>;
  /** Calls a method of the API that the CNI executables use. @throws CliError NO_AGENT, REFUSED */
  cni<M extends AgentMethod>(method: M, request: RequestInitOf<M>, timeoutMs?: number): Promise<ReplyOf<M>>;
  close(): void;
  [Symbol.dispose](): void;
};

/** Timeout of a call. The agent answers from memory: one that needs longer is stuck, and a user waits. */
const CALL_MS = 5_000;
/** Timeout of a repair pass, which compares the whole node, possibly under load. */
const REPAIR_MS = 60_000;
/** Largest reply. A pool of 1,000 addresses is 100 kB; the flight recorder has its own limit. */
const RECEIVE_BYTES = 64 << 20;
/** @see grpc status codes */
const CANCELLED = 1;
const RESOURCE_EXHAUSTED = 8;
const DEADLINE_EXCEEDED = 4;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

/**
 * Opens a client of the agent on its socket. The gRPC library is loaded by this call, so that commands without the
 * agent start sooner. Each call throws CliError: NO_AGENT when no agent answers or it is too old, FORBIDDEN, REFUSED.
 * @throws CliError NO_AGENT when there is no socket; FORBIDDEN when permission to open it is missing
 */
export async function openOpsClient(socket: string): Promise<OpsClient> {
  checkSocket(socket);
  const { Client: GrpcClient, credentials } = await import('@grpc/grpc-js');
  const client = new GrpcClient(`unix:${socket}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': RECEIVE_BYTES,
    // The value of the Host header: a socket's path is not a valid host name.
    'grpc.default_authority': 'localhost',
  });
  const call = <R>(method: MethodTable, request: unknown, timeoutMs: number) =>
    unary<R>(client, method, { clientVersion: release, ...(request as object) }, { timeoutMs, socket });
  const close = () => client.close();
  return {
    pool: () => call(OPS_METHODS.pool, {}, CALL_MS),
    summary: () => call(OPS_METHODS.summary, {}, CALL_MS),
    repair: (request) => call(OPS_METHODS.repair, request satisfies OpsRequestInitOf<'repair'>, REPAIR_MS),
    recorder: (pod) => call(OPS_METHODS.recorder, { pod } satisfies OpsRequestInitOf<'recorder'>, CALL_MS),
    watch: (kinds, signal, onOpen) => watch(client, { kinds, signal, onOpen, socket }),
    cni: (method, request, timeoutMs = CALL_MS) => call(AGENT_METHODS[method], request, timeoutMs),
    close,
    [Symbol.dispose]: close,
  };
}

/**
 * Returns whether an error means that no agent answers, or that it is too old. The caller may read the journal then.
 */
export function isNoAgent(error: unknown): error is CliError {
  return error instanceof CliError && error.code === 'NO_AGENT';
}

/** Returns whether an agent answered that does not implement the method. */
export function isTooOld(error: CliError): boolean {
  const { cause } = error;
  return isServiceError(cause) && cause.code === UNIMPLEMENTED;
}

function checkSocket(socket: string): void {
  try {
    if (statSync(socket).isSocket()) return;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EACCES' || code === 'EPERM') throw forbidden(socket, error);
    throw noAgent(`there is no ${socket}`, error);
  }
  throw noAgent(`${socket} is no socket`);
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
    (error, reply) => (error === null ? answer.resolve(reply) : answer.reject(asCliError(error, method.path, bounds))),
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
  const cancel = () => stream.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  if (onOpen !== undefined) stream.once('metadata', onOpen);
  try {
    for await (const event of stream) yield event as AgentEvent;
    if (!signal.aborted) throw noAgent(`the agent on ${socket} ended the stream`);
  } catch (error) {
    if (signal.aborted) return;
    throw isServiceError(error) ? asCliError(error, path, { timeoutMs: 0, socket }) : error;
  } finally {
    signal.removeEventListener('abort', cancel);
    cancel();
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'code' in error && 'details' in error && typeof error.code === 'number';
}

function asCliError(error: ServiceError, path: string, { timeoutMs, socket }: CallBounds): CliError {
  switch (error.code) {
    case UNIMPLEMENTED: {
      const next = 'update tke-eni-agent on this node to the release of this tool (tke-eni --version)';
      return new CliError('NO_AGENT', `the agent on ${socket} is too old for ${path}`, next, { cause: error });
    }
    case DEADLINE_EXCEEDED:
      return noAgent(`the agent on ${socket} did not answer within ${timeoutMs / 1000} s`, error);
    case UNAVAILABLE:
    case CANCELLED:
      return /EACCES|EPERM/.test(error.details)
        ? forbidden(socket, error)
        : noAgent(whyUnavailable(socket, error), error);
    case RESOURCE_EXHAUSTED:
      return new CliError('REFUSED', `the agent on ${socket} is busy: ${error.details}`, 'try again', { cause: error });
    default:
      return new CliError('REFUSED', `the agent on ${socket}: ${error.details}`, AGENT_LOG_HINT, { cause: error });
  }
}

function whyUnavailable(socket: string, error: ServiceError): string {
  return /ECONNREFUSED/.test(error.details) ? `no program listens on ${socket}` : `${socket}: ${error.details}`;
}

const AGENT_LOG_HINT = 'look at the agent: kubectl -n kube-system logs ds/tke-eni-agent';

function noAgent(why: string, cause?: unknown): CliError {
  return new CliError(
    'NO_AGENT',
    `the agent does not answer: ${why}`,
    `${AGENT_LOG_HINT}, or name its socket with --socket`,
    {
      cause,
    },
  );
}

function forbidden(socket: string, cause: unknown): CliError {
  return new CliError('FORBIDDEN', `${socket} is for root only`, 'run as root', { cause });
}
