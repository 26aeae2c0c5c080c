import { isNetlinkError } from '../netlink/netlink-error.ts';
import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import { canonicalAddress, hostPrefix } from './ip-prefix.ts';
import { TABLE_PODLESS } from './numbers.ts';
import { toRequests } from './to-request.ts';
import { unreachableRoute } from './unreachable-route.ts';

/**
 * Deletes at once what refuses packets to addresses: before another program routes them, or another node has
 * them. A repair pass would come after that. Idempotent. @throws NetlinkError for any failure other than absence
 */
export function letGo(rtnetlink: Rtnetlink, ips: readonly string[]): void {
  const requests = ips.flatMap((ip) => {
    const route = unreachableRoute(TABLE_PODLESS, hostPrefix(canonicalAddress(ip)));
    return toRequests({ kind: 'delete-route', route });
  });
  for (const outcome of rtnetlink.execute(requests)) {
    if (outcome.kind === 'error' && !isNetlinkError(outcome.error, 'ESRCH', 'ENOENT', 'EAFNOSUPPORT'))
      throw outcome.error;
  }
}
