import { constants, type ServerHttp2Stream } from 'node:http2';
import { Server, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';
import { PieceCounter } from '../../runtime/byte-collector.ts';

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
    interceptors: [boundPieces],
  });
}

/** Pieces of a request that are not held against their size: a request of 1 MiB comes in 64 or a few more. */
const FREE_PIECES = 1_024;

/**
 * Ends a call whose request comes in too many frames: the library keeps each until the request is complete, in 240 bytes or
 * more. It does not show the frames, so the stream is taken from its object of the call.
 */
const boundPieces: ServerInterceptor = (_method, call) => {
  const stream = Reflect.get(call, 'stream') as ServerHttp2Stream | undefined;
  const pieces = new PieceCounter(FREE_PIECES);
  stream?.on('data', ({ length }: Buffer) => {
    if (pieces.add(length)) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
  return new ServerInterceptingCall(call);
};
