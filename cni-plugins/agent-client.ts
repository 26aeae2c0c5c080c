import { decodeMessage, encodeMessage, type InitOf, type MessageTable } from '../agent/api/codec.ts';
import { AGENT_METHODS, type AgentMethod, type ReplyOf, type RequestInitOf } from '../agent/api/service.ts';
import { messageOf } from '../runtime/error-text.ts';
import { release } from '../runtime/release.ts';
import type { Backend } from './client/backend.ts';
import { CallError } from './client/call-error.ts';
import { callUnary } from './client/unary.ts';

/** Calls a method of the agent's API. @throws CallError when there was no readable answer. */
export type AgentCall = <M extends AgentMethod>(
  method: M,
  request: RequestInitOf<M>,
  timeoutMs: number,
) => Promise<ReplyOf<M>>;

/** Binds the API to the address of the agent. Opens nothing before the first call. */
export function createAgentCall(backend: Backend): AgentCall {
  return async <M extends AgentMethod>(method: M, request: RequestInitOf<M>, timeoutMs: number) => {
    const { path, request: requestTable, reply: replyTable }: MethodTables = AGENT_METHODS[method];
    const reply = await callUnary(backend, {
      path,
      request: encodeMessage(requestTable, request as InitOf<MessageTable>),
      timeoutMs,
      userAgent: `tke-eni-cni/${release}`,
    });
    try {
      return decodeMessage(replyTable, reply) as ReplyOf<M>;
    } catch (cause) {
      const reason = messageOf(cause);
      throw new CallError('PROTOCOL', `its answer is no message of ours: ${reason}`, { cause });
    }
  };
}

type MethodTables = { readonly path: string; readonly request: MessageTable; readonly reply: MessageTable };
