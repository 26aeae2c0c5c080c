import { Client, credentials } from '@grpc/grpc-js';
import { type CriMessage, criPath, decodeCri, encodeCri } from './cri-proto.ts';

/** Longest that the runtime may take for one call: a sandbox with an ADD that waits included. */
const CALL_MS = 60_000;

/** Talks to a real container runtime as a kubelet does. The caller closes it. */
export type CriClient = {
  /** Calls a method of the runtime service: `call('RunPodSandbox', {...})`. @throws the gRPC error, deadline included */
  call(method: string, request?: CriMessage): Promise<CriMessage>;
  close(): void;
};

/** Connects to a runtime's unix socket. */
export function openCriClient(socketPath: string): CriClient {
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure(), {
    // containerd's Go server accepts no path as authority.
    'grpc.default_authority': 'localhost',
  });
  return {
    call: (method, request = {}) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest<CriMessage, CriMessage>(
          criPath(method),
          (message) => encodeCri(`${method}Request`, message),
          (bytes) => decodeCri(`${method}Response`, bytes),
          request,
          { deadline: Date.now() + CALL_MS },
          (error, response) => (error === null && response !== undefined ? resolve(response) : reject(error)),
        );
      }),
    close: () => client.close(),
  };
}
