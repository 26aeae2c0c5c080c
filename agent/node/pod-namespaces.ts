import { fstatSync, readdirSync } from 'node:fs';
import { enterNetns } from '../../dataplane/enter-netns.ts';
import type { NodeKernel } from '../../dataplane/kernel.ts';
import { type OpenNetns, openNetns } from '../../netlink/netns.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';

/** The ways into the network namespaces of a machine, whoever they are of. */
export type PodNamespaces = {
  /** Lists the paths of those that have a name in `/run/netns`; none where they cannot be listed. */
  named(): readonly string[];
  /** @throws NetnsError 'ENOENT' and 'NOT_A_NETNS' where there is none */
  open(path: string): OpenNetns;
  /** Returns a text that is the same for every path of one namespace. */
  identityOf(netns: OpenNetns): string;
  readonly enter: NodeKernel['enter'];
};

/** Folder in which runtimes and `ip netns` name namespaces. */
const NETNS_FOLDER = '/run/netns';

/** Opens the ways of this machine, whose paths lie below `hostRoot`. */
export function openPodNamespaces(hostRoot: string): PodNamespaces {
  return {
    named: () => {
      try {
        return readdirSync(resolveHostPath(hostRoot, NETNS_FOLDER)).map((name) => `${NETNS_FOLDER}/${name}`);
      } catch {
        return [];
      }
    },
    open: (path) => openNetns(resolveHostPath(hostRoot, path)),
    identityOf: ({ fd }) => {
      const { dev, ino } = fstatSync(fd);
      return `${dev} ${ino}`;
    },
    enter: enterNetns,
  };
}
