import {
  Metadata,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { OpsMethod, OpsReplyInitOf, OpsRequestOf } from '../api/ops-service.ts';
import { OPS_SERVICE } from '../api/ops-service.ts';
import type { Subscription, Watcher } from '../recorder/event-hub.ts';
import type { LocalService } from '../server/grpc-server.ts';

/** The calls of the ops CLI, as the server calls them. */
export type OpsUseCases = {
  pool(request: { readonly runtimeHandlers: boolean }): Promise<OpsReplyInitOf<'pool'>>;
  summary(): Promise<OpsReplyInitOf<'summary'>>;
  /** Never rejects: the reply says why no pass could be run. */
  repair(request: { readonly dryRun: boolean; readonly ruleMode: string }): Promise<OpsReplyInitOf<'repair'>>;
  recorder(pod: string): OpsReplyInitOf<'recorder'>;
  /** Never rejects: the reply says why the caller has to read by itself. */
  explain(request: OpsRequestOf<'explain'>): Promise<OpsReplyInitOf<'explain'>>;
  watch(watcher: Watcher): Subscription;
  watchers(): number;
  /** Ends all watches, and those that come later. */
  close(): void;
};

/** Maximum number of watchers: more than people have terminals; each may cost a queue. */
const MAX_WATCHERS = 32;

/** Creates `service Ops`, which only translates. It is for root, on the unix socket: never offer it on TCP. */
export function opsService(useCases: OpsUseCases, agentVersion: string): LocalService {
  const implementation: UntypedServiceImplementation = {
    pool: unary<'pool'>(async (request) => ({ ...(await useCases.pool(request)), agentVersion })),
    summary: unary<'summary'>(async () => ({ ...(await useCases.summary()), agentVersion })),
    repair: unary<'repair'>(async (request) => ({ ...(await useCases.repair(request)), agentVersion })),
    recorder: unary<'recorder'>(async ({ pod }) => useCases.recorder(pod)),
    explain: unary<'explain'>(async (request) => ({ ...(await useCases.explain(request)), agentVersion })),
    watch: (call: ServerWritableStream<OpsRequestOf<'watch'>, OpsReplyInitOf<'watch'>>) => watch(useCases, call),
  };
  return { definition: OPS_SERVICE as ServiceDefinition, implementation, close: () => useCases.close() };
}

function unary<M extends OpsMethod>(answer: (request: OpsRequestOf<M>) => Promise<OpsReplyInitOf<M>>) {
  return (call: ServerUnaryCall<OpsRequestOf<M>, OpsReplyInitOf<M>>, reply: sendUnaryData<OpsReplyInitOf<M>>): void => {
    answer(call.request)
      .then((message) => reply(null, message))
      .catch((error: unknown) => reply(error instanceof Error ? error : new Error(String(error))));
  };
}

function watch(
  useCases: OpsUseCases,
  call: ServerWritableStream<OpsRequestOf<'watch'>, OpsReplyInitOf<'watch'>>,
): void {
  const refuse = (code: status, details: string) => call.emit('error', { code, details });
  if (useCases.watchers() >= MAX_WATCHERS) {
    refuse(status.RESOURCE_EXHAUSTED, `${MAX_WATCHERS} watch already`);
    return;
  }
  // The metadata shows the caller from when on it gets events.
  call.sendMetadata(new Metadata());
  const subscription = useCases.watch({
    kinds: new Set(call.request.kinds),
    write: (event) => call.write(event),
    end: () => refuse(status.UNAVAILABLE, 'the agent goes down'),
  });
  call.on('drain', subscription.ready);
  call.on('cancelled', subscription.close);
  call.on('close', subscription.close);
}
