import { formatIp, parseIp } from '../runtime/ip-text.ts';
import { Channel } from './channel.ts';
import { Conn } from './conn.ts';
import { INET_DIAG, INET_DIAG_REQUEST, type InetDiagMessage } from './inet-diag-message.ts';
import { isNetlinkError } from './netlink-error.ts';
import { openSocket } from './open-socket.ts';
import { IPPROTO_TCP } from './uapi/in.ts';
import { INET_DIAG_NOCOOKIE, SOCK_DIAG_BY_FAMILY } from './uapi/inet-diag.ts';
import { AF_INET, AF_INET6, NETLINK_SOCK_DIAG } from './uapi/netlink.ts';

/** One end of a TCP connection. */
export type TcpEnd = {
  /** As text; an IPv4 address may be written as an IPv6 one (`::ffff:127.0.0.1`). */
  readonly ip: string;
  readonly port: number;
};

/** Looks sockets of one network namespace up. Synchronous; one takes microseconds. */
export type SockDiag = {
  /**
   * Finds the socket at `from` that is connected to `to`: the other end of a connection of this machine. Undefined when
   * there is none, and on a kernel without the module `tcp_diag`. A listening socket is none, though the kernel answers with
   * it when the connection is gone.
   * @throws NetlinkError
   */
  findTcp(from: TcpEnd, to: TcpEnd): InetDiagMessage | undefined;
  /** Closes the socket. Idempotent. */
  close(): void;
};

/** Opens a connection in the current network namespace; the caller must close it. @throws LibcError. @see sock_diag(7) */
export function openSockDiag(): SockDiag {
  const conn = new Conn(new Channel(openSocket({ protocol: NETLINK_SOCK_DIAG })));
  return {
    findTcp: (from, to) => findTcp(conn, plain(from), plain(to)),
    close: () => conn.close(),
  };
}

function findTcp(conn: Conn, from: TcpEnd, to: TcpEnd): InetDiagMessage | undefined {
  const family = from.ip.includes(':') ? AF_INET6 : AF_INET;
  const request = { family, src: from.ip, sport: from.port, dst: to.ip, dport: to.port };
  try {
    const found = conn.get({
      type: SOCK_DIAG_BY_FAMILY,
      answerType: SOCK_DIAG_BY_FAMILY,
      codec: { ...INET_DIAG_REQUEST, read: INET_DIAG.read },
      body: {
        ...request,
        protocol: IPPROTO_TCP,
        states: ALL_STATES,
        cookie0: INET_DIAG_NOCOOKIE,
        cookie1: INET_DIAG_NOCOOKIE,
      },
      fail: () => ({
        op: 'SOCK_DIAG_BY_FAMILY',
        request: `ss -tn src ${from.ip}:${from.port} dst ${to.ip}:${to.port}`,
      }),
    });
    return isEnd(found, from, to) ? found : undefined;
  } catch (error) {
    if (isNetlinkError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const ALL_STATES = 0xffff_ffff;

function isEnd({ src, sport, dst, dport }: InetDiagMessage, from: TcpEnd, to: TcpEnd): boolean {
  return (
    sport === from.port && dport === to.port && plain({ ip: src }).ip === from.ip && plain({ ip: dst }).ip === to.ip
  );
}

/** Writes an IPv4 address that is mapped into IPv6 as what it is: the kernel finds either kind of socket by that. */
function plain<T extends Pick<TcpEnd, 'ip'>>(end: T): T {
  const bytes = parseIp(end.ip);
  if (bytes === undefined) return end;
  const mapped = bytes.length === 16 && MAPPED.every((byte, at) => bytes[at] === byte);
  return { ...end, ip: formatIp(bytes, mapped ? MAPPED.length : 0, mapped ? 4 : bytes.length) };
}

/** First bytes of an IPv4-mapped IPv6 address. @see RFC 4291 section 2.5.5.2 */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
