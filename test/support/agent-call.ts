import { Client, credentials } from '@grpc/grpc-js';
import { AGENT_SERVICE, type AgentMethod, type ReplyOf, type RequestInitOf } from '../../agent/api/service.ts';

/** Calls the agent's API directly, past the CNI executables. The caller closes it. */
export type AgentCaller = {
  /** @throws the gRPC error, the deadline included */
  call<M extends AgentMethod>(method: M, request: RequestInitOf<M>, timeoutMs?: number): Promise<ReplyOf<M>>;
  close(): void;
};

/** Opens a client of the agent's unix socket. */
export function openAgentCaller(socketPath: string): AgentCaller {
  // Shared with an earlier caller, the connection would be in its back-off while the agent is there again.
  const own = { 'grpc.use_local_subchannel_pool': 1 };
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure(), own);
  return {
    call: (method, request, timeoutMs = 60_000) =>
      new Promise((resolve, reject) => {
        const { path, requestSerialize, responseDeserialize } = AGENT_SERVICE[method];
        client.makeUnaryRequest(
          path,
          requestSerialize as (message: typeof request) => Buffer,
          responseDeserialize as (bytes: Buffer) => ReplyOf<typeof method>,
          request,
          { deadline: Date.now() + timeoutMs },
          (error, reply) => (error === null && reply !== undefined ? resolve(reply) : reject(error)),
        );
      }),
    close: () => client.close(),
  };
}
