import { LibcError } from '../../netlink/errno.ts';
import { NetlinkError } from '../../netlink/netlink-error.ts';
import { type Netns, NetnsError, openNetns } from '../../netlink/netns.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { CliError } from '../command/cli-error.ts';
import type { GlobalArgs } from '../command/command.ts';

/** The options that select the network namespace of the node. */
type NetnsChoice = Pick<GlobalArgs, 'netns' | 'hostRoot'>;

/** Calls `read` with the namespace that stands for the node's; undefined: the process's own. @throws CliError */
export function withNodeNetns<T>(global: NetnsChoice, read: (netns: Netns | undefined) => T): T {
  try {
    if (global.netns === undefined) return read(undefined);
    using netns = openNetns(netnsPathOf(global));
    return read(netns);
  } catch (error) {
    throw asCliError(error, global.netns);
  }
}

/**
 * Returns the path of the namespace that `--netns` names: a name belongs to /run/netns, anything with a slash is a path
 * of the host.
 */
export function netnsPathOf({ netns = '', hostRoot }: NetnsChoice): string {
  return resolveHostPath(hostRoot, netns.includes('/') ? netns : `/run/netns/${netns}`);
}

function asCliError(error: unknown, netns: string | undefined): unknown {
  if (error instanceof NetnsError || error instanceof LibcError) {
    if (error.code === 'EPERM' || error.code === 'EACCES') {
      const message = `network namespace ${netns ?? 'of this process'} may not be entered`;
      return new CliError('FORBIDDEN', message, 'run as root, or with CAP_SYS_ADMIN', { cause: error });
    }
    if (error instanceof NetnsError) {
      return new CliError('NOT_FOUND', error.message, 'ip netns list shows the names', { cause: error });
    }
    const next = 'rtnetlink is needed: is this Linux, outside of gVisor?';
    return new CliError('KERNEL', error.message, next, { cause: error });
  }
  if (error instanceof NetlinkError) {
    const next = 'try again; `ip route` by hand shows whether it is a fault of ours';
    return new CliError('KERNEL', error.message, next, { cause: error });
  }
  return error;
}
