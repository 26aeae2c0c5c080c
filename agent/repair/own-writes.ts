import type { MonitorEvent } from '../../netlink/monitor.ts';

/** Tells our own changes of the host's kernel from those of others. */
export type OwnWrites = {
  /**
   * Reports whether this process, or a child of it, made the change. False where the kernel does not name the sender: links,
   * IPv6 addresses, settings, and what it does itself.
   */
  isOwn(event: MonitorEvent): boolean;
  /** Notes a child process that changes nftables. Call it when the child starts, before its first notification. */
  noteProcess(pid: number): void;
};

/** Most senders of each kind that are remembered. Notifications arrive within milliseconds of the change. */
const MAX_SENDERS = 64;

/**
 * Follows which netlink sockets are ours. A port number belongs to one socket of a namespace at a time, so that no other
 * process can have ours.
 * @param rtnetlink The socket that changes the host's routing. It is replaced after a failed exchange.
 */
export function openOwnWrites(rtnetlink: { readonly portid: number }): OwnWrites {
  const portids = new Set<number>([rtnetlink.portid]);
  const pids = new Set<number>();
  return {
    isOwn: (event) => {
      switch (event.kind) {
        case 'rule':
        case 'route':
        case 'address':
        case 'qdisc':
        case 'filter':
          if (event.portid === rtnetlink.portid) addTo(portids, event.portid);
          return event.portid !== 0 && portids.has(event.portid);
        case 'nftables':
          // The port number of nft's socket is its pid as its own namespace numbers it; `pid` is that of the machine.
          return pids.has(event.portid) || (event.pid !== undefined && pids.has(event.pid));
        default:
          return false;
      }
    },
    noteProcess: (pid) => addTo(pids, pid),
  };
}

function addTo(senders: Set<number>, sender: number): void {
  senders.delete(sender);
  const oldest = senders.keys().next();
  if (senders.size >= MAX_SENDERS && oldest.done !== true) senders.delete(oldest.value);
  senders.add(sender);
}
