import { fstatSync, statSync } from 'node:fs';
import { type Netns, NetnsError, openNetns, openOwnNetns } from '../../netlink/netns.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { Sandboxes } from '../state/ports.ts';

/** The agent's own namespace is the host's, because it runs in the host network. */
const HOST_NETNS = '/proc/self/ns/net';

/**
 * Opens the runtime's namespaces, whose paths lie below `hostRoot` for the agent (`/proc/1/root` in a container that
 * shares the host's PID namespace).
 */
export function openSandboxes(hostRoot: string): Sandboxes {
  const open = (path: string): Netns => {
    const netns = openOrRefuse(hostRoot, path);
    if (isHost(netns)) {
      netns.close();
      throw new CniFailureError(
        CNI_CODE.invalidEnvironment,
        `CNI_NETNS ${path} is the host's own network namespace`,
        'a Pod in the host network needs no CNI; wiring it would change the node itself',
      );
    }
    return netns;
  };
  // Without a path it is not known whether the netns exists.
  const isAbsent = (path: string): boolean => path !== '' && !isNetns(hostRoot, path);
  const find = (path: string): Netns | undefined => {
    if (path === '' || isAbsent(path)) return undefined;
    const netns = openOrRefuse(hostRoot, path);
    // The path of a process that ended may belong to another process by now.
    if (!isHost(netns)) return netns;
    netns.close();
    return undefined;
  };
  return { open, isAbsent, find, own: openOwnNetns };
}

function openOrRefuse(hostRoot: string, path: string): Netns {
  try {
    return openNetns(resolveHostPath(hostRoot, path));
  } catch (error) {
    if (!(error instanceof NetnsError)) throw error;
    const problem =
      error.code === 'ENOENT'
        ? 'does not exist'
        : error.code === 'NOT_A_NETNS'
          ? 'is no network namespace'
          : `cannot be opened (${error.code})`;
    throw new CniFailureError(
      CNI_CODE.invalidEnvironment,
      `CNI_NETNS ${path} ${problem}`,
      'expected the path of a network namespace, as /run/netns/…',
      { cause: error },
    );
  }
}

function isNetns(hostRoot: string, path: string): boolean {
  try {
    openNetns(resolveHostPath(hostRoot, path)).close();
    return true;
  } catch (error) {
    // Any error but a clear "no" (EACCES, EMFILE) proves nothing: the netns counts as existing.
    return !(error instanceof NetnsError && (error.code === 'ENOENT' || error.code === 'NOT_A_NETNS'));
  }
}

function isHost(netns: Netns): boolean {
  const host = statSync(HOST_NETNS);
  const found = fstatSync(netns.fd);
  return host.ino === found.ino && host.dev === found.dev;
}
