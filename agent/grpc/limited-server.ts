import { Server } from '@grpc/grpc-js';

/** What one connection to a gRPC server may hold. */
export type ConnectionLimits = {
  /** Longest request, bytes. */
  readonly requestBytes: number;
  /** Most calls at once on one connection. */
  readonly streams: number;
  /** How long a connection may be without a call, milliseconds. */
  readonly idleMs: number;
};

/**
 * Creates a gRPC server whose connections have limits: every gRPC server of the agent is made here. The library's own
 * defaults let one connection hold any number of requests of 4 MiB.
 */
export function createLimitedServer({ requestBytes, streams, idleMs }: ConnectionLimits): Server {
  return new Server({
    'grpc.max_receive_message_length': requestBytes,
    'grpc.max_concurrent_streams': streams,
    'grpc.max_connection_idle_ms': idleMs,
    // It would record each connection, for a service that nothing asks.
    'grpc.enable_channelz': 0,
  });
}
