import { decodeMessage, encodeMessage, type InitOf, type MessageOf, type MessageTable } from './codec.ts';
import {
  AGENT_EVENT,
  EXPLAIN_REPLY,
  EXPLAIN_REQUEST,
  POOL_REPLY,
  POOL_REQUEST,
  RECORDER_REPLY,
  RECORDER_REQUEST,
  REPAIR_REPLY,
  REPAIR_REQUEST,
  SUMMARY_REPLY,
  SUMMARY_REQUEST,
  WATCH_REQUEST,
} from './ops-messages.ts';
import type { MethodTable } from './service.ts';

/**
 * The calls of `service Ops`: path on the wire, and the tables of request and reply. For `watch` the reply is one
 * event.
 */
export const OPS_METHODS = {
  pool: { path: '/tke.eni.v1.Ops/Pool', request: POOL_REQUEST, reply: POOL_REPLY },
  summary: { path: '/tke.eni.v1.Ops/Summary', request: SUMMARY_REQUEST, reply: SUMMARY_REPLY },
  repair: { path: '/tke.eni.v1.Ops/Repair', request: REPAIR_REQUEST, reply: REPAIR_REPLY },
  watch: { path: '/tke.eni.v1.Ops/Watch', request: WATCH_REQUEST, reply: AGENT_EVENT },
  recorder: { path: '/tke.eni.v1.Ops/Recorder', request: RECORDER_REQUEST, reply: RECORDER_REPLY },
  explain: { path: '/tke.eni.v1.Ops/Explain', request: EXPLAIN_REQUEST, reply: EXPLAIN_REPLY },
} as const satisfies Readonly<Record<string, MethodTable>>;

/** The key of one call. */
export type OpsMethod = keyof typeof OPS_METHODS;

/** A decoded request of a call. */
export type OpsRequestOf<M extends OpsMethod> = MessageOf<(typeof OPS_METHODS)[M]['request']>;
/** A request to encode. */
export type OpsRequestInitOf<M extends OpsMethod> = InitOf<(typeof OPS_METHODS)[M]['request']>;
/** A decoded reply of a call. */
export type OpsReplyOf<M extends OpsMethod> = MessageOf<(typeof OPS_METHODS)[M]['reply']>;
/** A reply to encode. */
export type OpsReplyInitOf<M extends OpsMethod> = InitOf<(typeof OPS_METHODS)[M]['reply']>;

/** The service in the shape that a gRPC library requires, without importing one. */
export const OPS_SERVICE = {
  pool: call('pool', false),
  summary: call('summary', false),
  repair: call('repair', false),
  watch: call('watch', true),
  recorder: call('recorder', false),
  explain: call('explain', false),
} as const;

/** One entry of OPS_SERVICE. With `S` true the server replies with a stream. */
type OpsDefinition<M extends OpsMethod, S extends boolean = boolean> = {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: S;
  readonly requestSerialize: (request: OpsRequestInitOf<M>) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => OpsRequestOf<M>;
  readonly responseSerialize: (reply: OpsReplyInitOf<M>) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => OpsReplyOf<M>;
};

function call<M extends OpsMethod, S extends boolean>(method: M, responseStream: S): OpsDefinition<M, S> {
  const { path, request, reply }: (typeof OPS_METHODS)[M] = OPS_METHODS[method];
  return {
    path,
    requestStream: false,
    responseStream,
    requestSerialize: (message) => encodeMessage(request, message as InitOf<MessageTable>),
    requestDeserialize: (bytes) => decodeMessage(request, bytes) as OpsRequestOf<M>,
    responseSerialize: (message) => encodeMessage(reply, message as InitOf<MessageTable>),
    responseDeserialize: (bytes) => decodeMessage(reply, bytes) as OpsReplyOf<M>,
  };
}
