import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Nft } from '../../dataplane/nft.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { TABLE_MAIN } from '../../dataplane/numbers.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import { AF_INET, AF_INET6 } from '../../netlink/uapi/netlink.ts';
import type { HostDump } from '../adopt/read-evidence.ts';
import type { HostView } from '../node-network.ts';

/** Tells whether nftables can be used: the tool is there and the kernel answers it. */
export async function probeNftables(nft: Nft): Promise<boolean> {
  try {
    await nft.read();
    return true;
  } catch (error) {
    if (isNftError(error)) return false;
    throw error;
  }
}

/** Finds CNI configurations that chain cilium-cni. An unreadable folder has none. */
export function findCiliumConflists(cniConfDir: string): readonly string[] {
  try {
    return readdirSync(cniConfDir)
      .filter((name) => /\.(conf|conflist|json)$/.test(name))
      .map((name) => join(cniConfDir, name))
      .filter((path) => /"type"\s*:\s*"cilium-cni"/.test(readFileSync(path, 'utf8')));
  } catch {
    return [];
  }
}

/** Reads what the primary interface is found by. */
export function readHostView(rtnetlink: Rtnetlink): HostView {
  return {
    links: rtnetlink.link.list(),
    addresses: rtnetlink.address.list(),
    mainRoutes: families().flatMap((family) => rtnetlink.route.list({ family, table: TABLE_MAIN })),
  };
}

/** Reads what an earlier agent may have left. */
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
