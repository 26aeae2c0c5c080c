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

/** One entry of AGENT_SERVICE. */
type UnaryDefinition<M extends AgentMethod> = {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: false;
  readonly requestSerialize: (request: RequestInitOf<M>) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => RequestOf<M>;
  readonly responseSerialize: (reply: ReplyInitOf<M>) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => ReplyOf<M>;
};

function unary<M extends AgentMethod>(method: M): UnaryDefinition<M> {
  const { path, request, reply }: (typeof AGENT_METHODS)[M] = AGENT_METHODS[method];
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: (message) => encodeMessage(request, message as InitOf<MessageTable>),
    requestDeserialize: (bytes) => decodeMessage(request, bytes) as RequestOf<M>,
    responseSerialize: (message) => encodeMessage(reply, message as InitOf<MessageTable>),
    responseDeserialize: (bytes) => decodeMessage(reply, bytes) as ReplyOf<M>,
  };
}
