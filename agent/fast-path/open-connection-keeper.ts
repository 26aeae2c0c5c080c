import { type ConnectionKeeper, keepConnections } from '../../dataplane/keep-connections.ts';
import { openCtnetlink } from '../../netlink/ctnetlink.ts';
import type { Logger } from '../../runtime/log.ts';
import { sysctlName, tcpBeLiberal } from '../../sysctl/sysctl-key.ts';

/**
 * Opens the keeper of the TCP connections of the current network namespace. The setting that they need is not given back
 * where they cannot be marked: they would stop, and to keep it does no harm. That is tried once in the life of an agent.
 */
export function openConnectionKeeper(log: Logger): ConnectionKeeper {
  let hasFailed = false;
  return {
    canKeep: () => !hasFailed,
    keep: async () => {
      if (hasFailed) return false;
      try {
        using ctnetlink = openCtnetlink();
        const counts = await keepConnections(ctnetlink);
        log.info('TCP connections that live are marked: their packets stay valid', counts);
        return true;
      } catch (error) {
        hasFailed = true;
        const setting = sysctlName(tcpBeLiberal());
        log.warn(
          'TCP connections cannot be marked, and would stop where invalid packets are dropped: the setting that they need stays until the agent starts again. Drain the node before setting it back by hand',
          { setting, error },
        );
        return false;
      }
    },
  };
}
