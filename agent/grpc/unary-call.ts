import type { Client } from '@grpc/grpc-js';
import { decodeMessage, encodeMessage, type InitOf, type MessageOf, type MessageTable } from '../api/codec.ts';

/** A call with one message each way. */
export type UnaryCall<Q extends MessageTable, A extends MessageTable> = {
  /** `/package.Service/Method` */
  readonly path: string;
  readonly request: Q;
  readonly response: A;
};

/** Bounds of one call; milliseconds. */
export type CallLimits = { readonly timeoutMs: number; readonly signal: AbortSignal };

/**
 * Makes a call, within the limits. Undefined: the call succeeded without a message.
 * @throws the gRPC library's ServiceError, CANCELLED when `signal` aborted meanwhile; the reason of `signal` when
 * before.
 */
export async function callUnary<Q extends MessageTable, A extends MessageTable>(
  client: Client,
  { path, request, response }: UnaryCall<Q, A>,
  message: InitOf<Q>,
  { timeoutMs, signal }: CallLimits,
): Promise<MessageOf<A> | undefined> {
  signal.throwIfAborted();
  const answer = Promise.withResolvers<MessageOf<A> | undefined>();
  const running = client.makeUnaryRequest<InitOf<Q>, MessageOf<A>>(
    path,
    (init) => encodeMessage(request, init),
    (bytes) => decodeMessage(response, bytes),
    message,
    { deadline: Date.now() + timeoutMs },
    (error, decoded) => (error === null ? answer.resolve(decoded) : answer.reject(error)),
  );
  const cancel = (): void => running.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await answer.promise;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
