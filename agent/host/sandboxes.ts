import { NetnsError, type OpenNetns } from '../../netlink/netns.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import { CniFailureError } from '../api/cni-failure.ts';
import type { Namespaces } from '../node/namespaces.ts';
import type { Sandboxes } from '../state/ports.ts';

/** Opens the runtime's namespaces, and never the host's in the place of one. */
export function openSandboxes(namespaces: Namespaces): Sandboxes {
  let host: string | undefined;
  const isHost = (netns: OpenNetns): boolean => {
    try {
      host ??= identityOfHost(namespaces);
      return namespaces.identityOf(netns) === host;
    } catch (error) {
      netns.close();
      throw error;
    }
  };
  const open = (path: string): OpenNetns => {
    const netns = openOrRefuse(namespaces, path);
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
  const isAbsent = (path: string): boolean => path !== '' && !isNetns(namespaces, path);
  const find = (path: string): OpenNetns | undefined => {
    if (path === '' || isAbsent(path)) return undefined;
    const netns = openOrRefuse(namespaces, path);
    // The path of a process that ended may belong to another process by now.
    if (!isHost(netns)) return netns;
    netns.close();
    return undefined;
  };
  return { open, isAbsent, find, own: () => namespaces.own() };
}

function openOrRefuse(namespaces: Namespaces, path: string): OpenNetns {
  try {
    return namespaces.open(path);
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

function isNetns(namespaces: Namespaces, path: string): boolean {
  try {
    namespaces.open(path).close();
    return true;
  } catch (error) {
    // Any error but a clear "no" (EACCES, EMFILE) proves nothing: the netns counts as existing.
    return !(error instanceof NetnsError && (error.code === 'ENOENT' || error.code === 'NOT_A_NETNS'));
  }
}

function identityOfHost(namespaces: Namespaces): string {
  using own = namespaces.own();
  return namespaces.identityOf(own);
}
