import { createServer, type Server, type Socket } from 'node:net';
import { openNetns, withNetns } from '../../netlink/netns.ts';
import type { NetnsView } from '../../sim/support/netns.ts';

/** How a door is shut: packets vanish, or connections are refused. */
export type Cut = 'silent' | 'refused';

/** An address in a network namespace behind which a server of this process stands. */
export type Door = {
  /** `127.0.0.1:6443`, as seen in the namespace. */
  readonly address: string;
  /** Shuts the door, for connections that are open too. */
  cut(how: Cut): Promise<void>;
  /** Opens it again. Idempotent. */
  heal(): Promise<void>;
  close(): void;
};

/**
 * Listens in a network namespace and hands what connects there to `accept`: so processes in many namespaces reach one
 * server without a packet leaving its namespace. The caller closes it.
 */
export function openDoor(netns: NetnsView, port: number, accept: (socket: Socket) => void): Door {
  const server = createServer(accept);
  const table = `tke_test_cut_${port}`;
  listenIn(netns, server, port);
  return {
    address: `127.0.0.1:${port}`,
    cut: (how) => {
      const rules =
        how === 'silent'
          ? `tcp dport ${port} drop\n tcp sport ${port} drop`
          : // What comes back must pass: the reset does.
            `tcp dport ${port} reject with tcp reset`;
      return netns.nft(`table inet ${table} {
        chain input {
          type filter hook input priority -400
          ${rules}
        }
      }`);
    },
    heal: () => netns.nft(`table inet ${table}\ndelete table inet ${table}\n`),
    close: () => void server.close(),
  };
}

/** A socket belongs to the namespace in which it is made; without a host to look up, `listen` makes it at once. */
function listenIn(netns: NetnsView, server: Server, port: number): void {
  const opened = openNetns(netns.path);
  try {
    withNetns(opened, () => void server.listen(port));
  } finally {
    opened.close();
  }
}
