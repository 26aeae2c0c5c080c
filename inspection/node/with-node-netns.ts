import { LibcError } from '../../netlink/errno.ts';
import { NetlinkError } from '../../netlink/netlink-error.ts';
import { type Netns, NetnsError, openNetns } from '../../netlink/netns.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { UserError } from '../../runtime/user-error.ts';

/** Where a node is read: its network namespace, its files and the agent's state. */
export type NodePlace = {
  /** Agent's state folder: journal and node file. */
  readonly stateDir: string;
  /**
   * Network namespace to read as the node's: a name in /run/netns or a path. Undefined: the process's own namespace.
   */
  readonly netns: string | undefined;
  /** Root of the host's file system; '/' on the host, /proc/1/root inside the agent's container. */
  readonly hostRoot: string;
};

type NetnsChoice = Pick<NodePlace, 'netns' | 'hostRoot'>;

/** Calls `read` with the namespace that stands for the node's; undefined: the process's own. @throws UserError */
export function withNodeNetns<T>(global: NetnsChoice, read: (netns: Netns | undefined) => T): T {
  try {
    if (global.netns === undefined) return read(undefined);
    using netns = openNetns(netnsPathOf(global));
    return read(netns);
  } catch (error) {
    throw asUserError(error, global.netns);
  }
}

/**
 * Returns the path of the namespace that `--netns` names: a name belongs to /run/netns, anything with a slash is a path
 * of the host.
 */
export function netnsPathOf({ netns = '', hostRoot }: NetnsChoice): string {
  return resolveHostPath(hostRoot, netns.includes('/') ? netns : `/run/netns/${netns}`);
}

function asUserError(error: unknown, netns: string | undefined): unknown {
  if (error instanceof NetnsError || error instanceof LibcError) {
    if (error.code === 'EPERM' || error.code === 'EACCES') {
      const message = `network namespace ${netns ?? 'of this process'} may not be entered`;
      return new UserError('FORBIDDEN', message, 'run as root, or with CAP_SYS_ADMIN', { cause: error });
    }
    if (error instanceof NetnsError) {
      return new UserError('NOT_FOUND', error.message, 'ip netns list shows the names', { cause: error });
    }
    const next = 'rtnetlink is needed: is this Linux, outside of gVisor?';
    return new UserError('KERNEL', error.message, next, { cause: error });
  }
  if (error instanceof NetlinkError) {
    const next = 'try again; `ip route` by hand shows whether it is a fault of ours';
    return new UserError('KERNEL', error.message, next, { cause: error });
  }
  return error;
}
