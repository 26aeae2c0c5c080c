import { createServer, type Socket } from 'node:net';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { openSockDiag, type SockDiag } from '../../netlink/sock-diag.ts';
import { ConfigError } from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { listenOn } from '../../runtime/listen-on.ts';
import type { Logger } from '../../runtime/log.ts';
import { decideTcpCaller } from './decide-tcp-caller.ts';

/** What listening for root needs. */
type RootListenerOptions = {
  /** `host:port` of this machine's loopback. */
  readonly address: string;
  /** Most connections at a time; further ones are closed. */
  readonly connections: number;
  readonly log: Logger;
  readonly monotonicMs: () => number;
};

/**
 * Serves connections of root on a TCP address, and closes all others before a byte of them is read. Who connects is looked
 * up in the kernel, by the connection's addresses and ports. A container with uid 0 in the host's network is root here.
 * @returns what stops listening.
 * @throws ConfigError that names `--listen-address`
 */
export async function listenForRoot(server: Server, options: RootListenerOptions): Promise<() => void> {
  const { address, connections } = options;
  const sockets = openDiag(address);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const report = createReport(options);
  const listener = createServer((connection) => {
    const why = refusalOf(sockets, connection);
    if (why === undefined) {
      injector.injectConnection(connection);
      return;
    }
    const { remotePort } = connection;
    connection.on('error', () => {}).destroy();
    report(remotePort, why);
  });
  listener.maxConnections = connections;
  try {
    await listenOn(listener, address, FLAG, ", or '' for none");
  } catch (error) {
    sockets.close();
    throw error;
  }
  return () => {
    listener.close();
    sockets.close();
  };
}

const FLAG = '--listen-address';

function openDiag(address: string): SockDiag {
  try {
    return openSockDiag();
  } catch (error) {
    const expected = "'' on this kernel, which cannot tell who connects (NETLINK_SOCK_DIAG)";
    throw new ConfigError('settings', [{ path: FLAG, expected, got: `${address}: ${messageOf(error)}` }]);
  }
}

function refusalOf(sockets: SockDiag, connection: Socket): string | undefined {
  const { remoteAddress: ip, remotePort: port, localAddress, localPort } = connection;
  // Node.js reads the addresses of a connection when they are asked for: one that is reset has none.
  if (ip === undefined || port === undefined || localAddress === undefined || localPort === undefined) {
    return decideTcpCaller(undefined);
  }
  try {
    return decideTcpCaller(sockets.findTcp({ ip, port }, { ip: localAddress, port: localPort }));
  } catch (error) {
    return `its socket cannot be looked up: ${messageOf(error)}`;
  }
}

/** Writes one line in `REPORT_EVERY_MS` at most, with how many connections had none. */
function createReport({ address, log, monotonicMs }: RootListenerOptions) {
  let reportedAtMs = Number.NEGATIVE_INFINITY;
  let unreported = 0;
  return (port: number | undefined, why: string): void => {
    const nowMs = monotonicMs();
    if (nowMs - reportedAtMs < REPORT_EVERY_MS) {
      unreported++;
      return;
    }
    log.warn('connection refused: only root may call', { address, port, why, unreported });
    reportedAtMs = nowMs;
    unreported = 0;
  };
}

const REPORT_EVERY_MS = 10_000;
