import { Server, ServerCredentials, type ServerWritableStream, status } from '@grpc/grpc-js';
import type {
  AgentEventInit,
  ExplainReplyInit,
  ExplainRequest,
  PoolReplyInit,
  RecorderReplyInit,
  RecorderRequest,
  RepairReplyInit,
  SummaryReplyInit,
} from '../../../agent/api/ops-messages.ts';
import { OPS_SERVICE } from '../../../agent/api/ops-service.ts';

/** What a stand-in of the agent answers; it may be changed while it serves. */
type FakeAnswers = {
  pool?: PoolReplyInit;
  summary?: SummaryReplyInit;
  /** Milliseconds after which pool and summary are answered; default at once. */
  delayMs?: number;
  repair?: RepairReplyInit;
  recorder?: (request: RecorderRequest) => RecorderReplyInit;
  /** Undefined: never answers. */
  explain?: (request: ExplainRequest) => ExplainReplyInit | undefined;
};

/** A server of service Ops on a socket. The test closes it. */
export type FakeAgent = {
  readonly answers: FakeAnswers;
  /** Sends an event to all who watch. */
  tell(event: AgentEventInit): void;
  watchers(): number;
  close(): void;
};

/** Serves `answers` on a unix socket, with the service's own tables on a real transport. */
export async function startFakeAgent(socket: string, answers: FakeAnswers): Promise<FakeAgent> {
  const server = new Server();
  const streams = new Set<ServerWritableStream<unknown, AgentEventInit>>();
  type Reply = (error: { code: number; details: string } | null, value?: object) => void;
  const answer = (callback: Reply, value: object | undefined) =>
    value === undefined
      ? callback({ code: status.UNIMPLEMENTED, details: 'not in this release' })
      : callback(null, value);
  const later = (reply: () => void): unknown =>
    answers.delayMs === undefined ? reply() : setTimeout(reply, answers.delayMs);
  server.addService(OPS_SERVICE, {
    pool: (_call: unknown, callback: Reply) => later(() => answer(callback, answers.pool)),
    summary: (_call: unknown, callback: Reply) => later(() => answer(callback, answers.summary)),
    repair: (_call: unknown, callback: Reply) => answer(callback, answers.repair),
    recorder: (call: { request: RecorderRequest }, callback: Reply) =>
      answer(callback, answers.recorder?.(call.request)),
    explain: (call: { request: ExplainRequest }, callback: Reply) => {
      if (answers.explain === undefined) return answer(callback, undefined);
      const reply = answers.explain(call.request);
      if (reply !== undefined) answer(callback, reply);
    },
    watch: (call: ServerWritableStream<unknown, AgentEventInit>) => {
      call.sendMetadata(call.metadata);
      streams.add(call);
      call.on('cancelled', () => streams.delete(call));
    },
  });
  const bound = Promise.withResolvers<void>();
  server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
    error === null ? bound.resolve() : bound.reject(error),
  );
  await bound.promise;
  return {
    answers,
    tell: (event) => {
      for (const stream of streams) stream.write(event);
    },
    watchers: () => streams.size,
    close: () => server.forceShutdown(),
  };
}
