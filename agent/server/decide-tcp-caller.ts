import type { InetDiagMessage } from '../../netlink/inet-diag-message.ts';
import { TCP_ESTABLISHED } from '../../netlink/uapi/inet-diag.ts';

/**
 * Decides whether the process at the other end of a TCP connection may call: root alone. Only a socket that a process has
 * open shows a uid; for one that was closed the kernel reports 0, though its bytes may still wait to be read here.
 * @param socket The caller's socket; undefined when the kernel has none.
 * @returns why it may not; undefined when it may.
 */
export function decideTcpCaller(
  socket: Pick<InetDiagMessage, 'state' | 'uid' | 'inode'> | undefined,
): string | undefined {
  if (socket === undefined) return 'no such socket on this node: the caller is gone, or the kernel has no tcp_diag';
  if (socket.state !== TCP_ESTABLISHED || socket.inode === 0) return 'the caller has closed its socket';
  return socket.uid === 0 ? undefined : `a process of uid ${socket.uid}`;
}
