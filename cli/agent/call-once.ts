import { decodeMessage, encodeMessage, type InitOf, type MessageTable } from '../../agent/api/codec.ts';
import type { MethodTable } from '../../agent/api/service.ts';
import { CallError } from '../../cni-plugins/client/call-error.ts';
import { callUnary } from '../../cni-plugins/client/unary.ts';
import { release } from '../../runtime/release.ts';
import { LONGER_WAIT, silentAgent, unreachable } from './agent-errors.ts';

/**
 * Calls the agent once over the small client, which takes a third of the CPU time of the gRPC library. Returns undefined when
 * only the library can say why there is no message.
 * @throws UserError NO_AGENT, FORBIDDEN
 */
export async function callOnce<R>(
  socket: string,
  method: MethodTable,
  request: object,
  timeoutMs: number,
): Promise<R | undefined> {
  const message = { clientVersion: release, ...request } as InitOf<MessageTable>;
  const bytes = encodeMessage(method.request, message);
  const call = { path: method.path, request: bytes, timeoutMs, userAgent: `tke-eni/${release}` };
  try {
    const reply: unknown = decodeMessage(method.reply, await callUnary({ kind: 'unix', path: socket }, call));
    // The codec has decoded it with the reply table of this method.
    return reply as R;
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    if (error.code === 'DEADLINE') throw silentAgent(socket, timeoutMs, { cause: error, longer: LONGER_WAIT });
    if (error.code === 'UNREACHABLE') throw unreachable(socket, error.message, error);
    return undefined;
  }
}
