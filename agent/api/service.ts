import { decodeMessage, encodeMessage, type InitOf, type MessageOf, type MessageTable } from './codec.ts';
import {
  ATTACH_REPLY,
  ATTACH_REQUEST,
  CHECK_REPLY,
  CHECK_REQUEST,
  DETACH_REPLY,
  DETACH_REQUEST,
  GC_REPLY,
  GC_REQUEST,
  RUN_REPLY,
  RUN_REQUEST,
  STATUS_REPLY,
  STATUS_REQUEST,
} from './messages.ts';

/** The calls of `service Agent`: path on the wire, and the tables of request and reply. */
export const AGENT_METHODS = {
  add: { path: '/tke.eni.v1.Agent/Add', request: ATTACH_REQUEST, reply: ATTACH_REPLY },
  del: { path: '/tke.eni.v1.Agent/Del', request: DETACH_REQUEST, reply: DETACH_REPLY },
  check: { path: '/tke.eni.v1.Agent/Check', request: CHECK_REQUEST, reply: CHECK_REPLY },
  status: { path: '/tke.eni.v1.Agent/Status', request: STATUS_REQUEST, reply: STATUS_REPLY },
  gc: { path: '/tke.eni.v1.Agent/Gc', request: GC_REQUEST, reply: GC_REPLY },
} as const satisfies Readonly<Record<string, MethodTable>>;

/** The key of one call. */
export type AgentMethod = keyof typeof AGENT_METHODS;

/** One unary call. */
export type MethodTable = { readonly path: string; readonly request: MessageTable; readonly reply: MessageTable };

/** A decoded request of a call. */
export type RequestOf<M extends AgentMethod> = MessageOf<(typeof AGENT_METHODS)[M]['request']>;
/** A request to encode. */
export type RequestInitOf<M extends AgentMethod> = InitOf<(typeof AGENT_METHODS)[M]['request']>;
/** A decoded reply of a call. */
export type ReplyOf<M extends AgentMethod> = MessageOf<(typeof AGENT_METHODS)[M]['reply']>;
/** A reply to encode. */
export type ReplyInitOf<M extends AgentMethod> = InitOf<(typeof AGENT_METHODS)[M]['reply']>;

/**
 * The service in the shape that a gRPC library requires (`Server.addService`, `makeClientConstructor`), without
 * importing one: the executables use this folder too, and bundle no gRPC library.
 */
export const AGENT_SERVICE = {
  add: unary('add'),
  del: unary('del'),
  check: unary('check'),
  status: unary('status'),
  gc: unary('gc'),
} as const;

/** The call of the executables' launcher. */
export const RUN_METHOD = {
  path: '/tke.eni.v1.Agent/Run',
  request: RUN_REQUEST,
  reply: RUN_REPLY,
} as const satisfies MethodTable;

/** A decoded request of {@link RUN_METHOD}. */
export type RunRequest = MessageOf<typeof RUN_REQUEST>;
/** A reply of {@link RUN_METHOD} to encode. */
export type RunReplyInit = InitOf<typeof RUN_REPLY>;

/** The service on the unix socket, which only root may open: a call of the launcher runs as the agent does. */
export const SOCKET_SERVICE = { ...AGENT_SERVICE, run: definitionOf<RunRequest, RunReplyInit>(RUN_METHOD) } as const;

/** A unary call as a gRPC library takes it. */
type UnaryDefinition<Request, RequestInit, Reply, ReplyInit> = {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: false;
  readonly requestSerialize: (request: RequestInit) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Request;
  readonly responseSerialize: (reply: ReplyInit) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Reply;
};

function unary<M extends AgentMethod>(
  method: M,
): UnaryDefinition<RequestOf<M>, RequestInitOf<M>, ReplyOf<M>, ReplyInitOf<M>> {
  return definitionOf(AGENT_METHODS[method]);
}

/** Makes the definition of a call from its tables, which the types of the caller describe. */
function definitionOf<Request, ReplyInit, RequestInit = Request, Reply = ReplyInit>({
  path,
  request,
  reply,
}: MethodTable): UnaryDefinition<Request, RequestInit, Reply, ReplyInit> {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message) => encodeMessage(request, message as InitOf<MessageTable>),
    requestDeserialize: (bytes) => decodeMessage(request, bytes) as Request,
    responseSerialize: (message) => encodeMessage(reply, message as InitOf<MessageTable>),
    responseDeserialize: (bytes) => decodeMessage(reply, bytes) as Reply,
  };
}
