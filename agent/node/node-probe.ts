import type { Nft } from '../../dataplane/nft.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { TABLE_MAIN } from '../../dataplane/numbers.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { HostView } from './node-network.ts';
import type { HostDump } from './read-evidence.ts';

const PROBE_ATTEMPTS = 3;
const PROBE_PAUSE_MS = 500;

/**
 * Reports whether nftables can be used: the tool exists and the kernel accepts its requests. A refusal may be temporary
 * (no memory, a table that changes), and the result decides the node's rules until the next start: so it is tried
 * again.
 */
export async function probeNftables(nft: Pick<Nft, 'read'>, clock: Pick<Clock, 'sleep'>): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      await nft.read();
      return true;
    } catch (error) {
      if (!isNftError(error)) throw error;
      if (attempt === PROBE_ATTEMPTS || error.code === 'NFT_MISSING') return false;
      await clock.sleep(PROBE_PAUSE_MS);
    }
  }
}

/**
 * Reads the input of finding the primary interface. What cannot be read is left out; passes report it.
 * @throws NetlinkError also when changes interrupt a dump again and again
 */
export function readHostView(rtnetlink: Rtnetlink): HostView {
  return rtnetlink.skipUnreadable(() => ({
    links: rtnetlink.link.list(),
    addresses: rtnetlink.address.list(),
    mainRoutes: families().flatMap((family) => rtnetlink.route.list({ family, table: TABLE_MAIN })),
  })).result;
}

/** Dumps the kinds of objects that an earlier agent may have left. */
export function readHostDump(rtnetlink: Rtnetlink): HostDump {
  return {
    links: rtnetlink.link.list(),
    routes: families().flatMap((family) => rtnetlink.route.list({ family })),
    rules: families().flatMap((family) => rtnetlink.rule.list({ family })),
  };
}

function families(): readonly number[] {
  return [AF_INET, AF_INET6];
}
