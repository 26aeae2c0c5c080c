import { statSync } from 'node:fs';
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
import { UserError } from '../../runtime/user-error.ts';
import { forbidden, noAgent, SilenceError } from './agent-errors.ts';
import { callOnce } from './call-once.ts';
import type { GrpcClient } from './grpc-client.ts';

/** Client of a running agent's API. The caller must close it. */
export type OpsClient = {
  /** With `runtimeHandlers` the agent asks the container runtime for those of the Pods. */
  pool(request?: { readonly runtimeHandlers: boolean }): Promise<OpsReplyOf<'pool'>>;
  summary(): Promise<OpsReplyOf<'summary'>>;
  /** Without `dryRun` the agent changes the kernel. */
  repair(request: { readonly dryRun: boolean }): Promise<OpsReplyOf<'repair'>>;
  recorder(pod: string): Promise<OpsReplyOf<'recorder'>>;
  /**
   * Streams events from now on, until `signal` aborts. `onOpen` runs when the agent has accepted the call.
   * @throws UserError NO_AGENT when the agent ends the stream
   */
  watch(kinds: readonly number[], signal: AbortSignal, onOpen?: () => void): AsyncIterable<AgentEvent>;
  /** Calls a method of the API that the CNI executables use. @throws UserError NO_AGENT, REFUSED */
  cni<M extends AgentMethod>(method: M, request: RequestInitOf<M>, timeoutMs?: number): Promise<ReplyOf<M>>;
  close(): void;
  [Symbol.dispose](): void;
};

/**
 * Timeout of a call, or what `--agent-timeout` says above it. The agent answers from memory, but its node may be busy, and
 * a user waits.
 */
const CALL_MS = 5_000;
/** Timeout of a repair pass, which compares the whole node, possibly under load. */
const REPAIR_MS = 60_000;
/** Timeout of the second try of a call for which there is another source, milliseconds. */
const PATIENCE_MS = 3_000;

/** The agent's socket, what `--agent-timeout` says, milliseconds, and whether the user gave it. */
export type AgentPlace = {
  readonly socket: string;
  readonly agentTimeoutMs: number;
  readonly isAgentTimeoutGiven?: boolean;
};

/**
 * Opens a client of the agent on its socket. Reads go over a small client: the gRPC library takes 60 ms of CPU time to
 * start, and is loaded only for the other calls, and to learn why a call got no message. Each call throws UserError:
 * NO_AGENT when no agent answers or it is too old, FORBIDDEN, REFUSED.
 * @param readMs limit of each call that reads, milliseconds
 * @throws UserError NO_AGENT when there is no socket; FORBIDDEN when permission to open it is missing
 */
export async function openOpsClient(
  { socket, agentTimeoutMs }: AgentPlace,
  readMs: number = Math.max(CALL_MS, agentTimeoutMs),
): Promise<OpsClient> {
  checkSocket(socket);
  let library: GrpcClient | undefined;
  const load = async (): Promise<GrpcClient> => {
    library ??= (await import('./grpc-client.ts')).openGrpcClient(socket);
    return library;
  };
  const call = async <R>(method: MethodTable, request: object, timeoutMs: number): Promise<R> =>
    await (await load()).unary(method, { clientVersion: release, ...request }, timeoutMs);
  const read = async <R>(method: MethodTable, request: object): Promise<R> => {
    const answer = await callOnce<R>(socket, method, request, readMs);
    return answer ?? (await call(method, request, Math.max(CALL_MS, readMs)));
  };
  const close = () => library?.close();
  return {
    pool: (request = { runtimeHandlers: false }) => read(OPS_METHODS.pool, request satisfies OpsRequestInitOf<'pool'>),
    summary: () => read(OPS_METHODS.summary, {}),
    repair: (request) => call(OPS_METHODS.repair, request satisfies OpsRequestInitOf<'repair'>, REPAIR_MS),
    recorder: (pod) => read(OPS_METHODS.recorder, { pod } satisfies OpsRequestInitOf<'recorder'>),
    watch: async function* (kinds, signal, onOpen) {
      yield* (await load()).watch({ kinds, signal, onOpen });
    },
    cni: (method, request, timeoutMs = CALL_MS) => call(AGENT_METHODS[method], request, timeoutMs),
    close,
    [Symbol.dispose]: close,
  };
}

/**
 * Reads from the agent within `--agent-timeout`, for a command that has another source. Where the user did not say how long,
 * an agent that is silent gets more time once: a node that is busy, or an agent amid a repair pass, is not one without an agent.
 * @throws UserError NO_AGENT, FORBIDDEN, REFUSED; what `read` throws
 */
export async function readPatiently<T>(place: AgentPlace, read: (client: OpsClient) => Promise<T>): Promise<T> {
  const within = async (limitMs: number): Promise<T> => {
    using client = await openOpsClient(place, limitMs);
    return await read(client);
  };
  const { agentTimeoutMs, isAgentTimeoutGiven = false } = place;
  try {
    return await within(agentTimeoutMs);
  } catch (error) {
    if (!isNoAgent(error) || !isSilent(error) || isAgentTimeoutGiven) throw error;
    return await within(PATIENCE_MS);
  }
}

/**
 * Returns whether an error means that no agent answers, or that it is too old. The caller may read the journal then.
 */
export function isNoAgent(error: unknown): error is UserError {
  return error instanceof UserError && error.code === 'NO_AGENT';
}

/** Returns whether an agent answered that does not implement the method. */
export function isTooOld({ cause }: UserError): boolean {
  // An error of the gRPC library, whose class has no name outside of it.
  return cause instanceof Error && 'details' in cause && 'code' in cause && cause.code === UNIMPLEMENTED;
}

/** Returns whether an agent listens and did not answer in time. */
export function isSilent({ cause }: UserError): boolean {
  return cause instanceof SilenceError;
}

/** @see grpc status codes */
const UNIMPLEMENTED = 12;

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
