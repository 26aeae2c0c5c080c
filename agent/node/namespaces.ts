import { fstatSync, readdirSync } from 'node:fs';
import { enterNetns } from '../../dataplane/enter-netns.ts';
import type { NodeKernel } from '../../dataplane/kernel.ts';
import { type OpenNetns, openNetns, openOwnNetns } from '../../netlink/netns.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';

/** The network namespaces of a machine. What is opened, the caller closes. */
export type Namespaces = {
  /** Opens the host's own. */
  own(): OpenNetns;
  /** @throws NetnsError 'ENOENT' and 'NOT_A_NETNS' where there is none */
  open(path: string): OpenNetns;
  /** Lists the paths of those that have a name in `/run/netns`; none where they cannot be listed. */
  named(): readonly string[];
  /** Returns a text that is the same for every path of one namespace. */
  identityOf(netns: OpenNetns): string;
  readonly enter: NodeKernel['enter'];
};

/** Folder in which runtimes and `ip netns` name namespaces. */
const NETNS_FOLDER = '/run/netns';

/**
 * Opens those of this machine, whose paths lie below `hostRoot` for the agent (`/proc/1/root` in a container that shares the
 * host's PID namespace). The agent's own is the host's, because it runs in the host network.
 */
export function openNamespaces(hostRoot: string): Namespaces {
  return {
    own: openOwnNetns,
    open: (path) => openNetns(resolveHostPath(hostRoot, path)),
    named: () => {
      try {
        return readdirSync(resolveHostPath(hostRoot, NETNS_FOLDER)).map((name) => `${NETNS_FOLDER}/${name}`);
      } catch {
        return [];
      }
    },
    identityOf: ({ fd }) => {
      const { dev, ino } = fstatSync(fd);
      return `${dev} ${ino}`;
    },
    enter: enterNetns,
  };
}
