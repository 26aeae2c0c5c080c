import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';

/**
 * grpc.health.v1.Health, by hand: one text in, one number out.
 * HealthCheckRequest { string service = 1; }   HealthCheckResponse { ServingStatus status = 1; }
 * @see https://github.com/grpc/grpc/blob/master/doc/health-checking.md
 */
const SERVING = 1;
const NOT_SERVING = 2;
const TAG_STATUS = 0x08;

type Status = typeof SERVING | typeof NOT_SERVING;

/** The health service: what a gRPC server registers, and the switch of its status. */
export type Health = {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
  setServing(serving: boolean): void;
  /**
   * Ends the streams of all watchers; a server with an open stream does not shut down. Later watchers get one answer.
   */
  close(): void;
};

type Watcher = { write(status: Status): boolean; end(): void; on(event: 'cancelled', run: () => void): void };

/** Creates a health service that answers NOT_SERVING until set otherwise; one status for every service name. */
export function createHealth(): Health {
  let status: Status = NOT_SERVING;
  const watchers = new Set<Watcher>();
  let isClosed = false;
  const codec = {
    requestSerialize: (bytes: Buffer) => bytes,
    // The name asked for does not matter: this process has one service.
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (value: Status) => Buffer.from([TAG_STATUS, value]),
    responseDeserialize: (bytes: Buffer) => bytes[1],
    requestStream: false,
  } as const;
  return {
    definition: {
      check: { ...codec, path: '/grpc.health.v1.Health/Check', responseStream: false },
      watch: { ...codec, path: '/grpc.health.v1.Health/Watch', responseStream: true },
    },
    implementation: {
      check: (_call: unknown, reply: (error: null, value: Status) => void) => reply(null, status),
      watch: (call: Watcher) => {
        call.write(status);
        if (isClosed) return call.end();
        watchers.add(call);
        call.on('cancelled', () => watchers.delete(call));
      },
    },
    setServing: (serving) => {
      const next = serving ? SERVING : NOT_SERVING;
      if (next === status) return;
      status = next;
      for (const watcher of watchers) watcher.write(status);
    },
    close: () => {
      isClosed = true;
      for (const watcher of watchers) watcher.end();
      watchers.clear();
    },
  };
}
