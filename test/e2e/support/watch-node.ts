import type { Child } from '../../../sim/support/child.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';

/** What iproute2 and nft saw happen in a node meanwhile. */
export type Sighting = {
  /** Lines of `ip monitor` that tell of a deletion. */
  readonly deletions: readonly string[];
  /** All other lines of `ip monitor` on routes and rules with our protocol. */
  readonly changes: readonly string[];
  /** True when nothing was added or written after the first deletion. */
  readonly isAddedFirst: boolean;
  /** Lines of `nft monitor` on our table. */
  readonly nft: readonly string[];
};

/** A watch that is under way; `end` stops it and tells. */
type Watch = { end(): Promise<Sighting> };

/** A route of the watch itself, by which it sees that it sees; of a documentation prefix (RFC 5737). */
const BEACON = '198.51.100.77';
const BEACON_TABLE = 'tke_test_beacon';

/** Watches links, addresses, routes, rules and nftables of a node from outside. The caller ends it. */
export async function watchNode(netns: NetnsView): Promise<Watch> {
  const ip = netns.start(['ip', '-N', 'monitor', 'link', 'address', 'route', 'rule']);
  const nft = netns.start(['nft', 'monitor']);
  await beaconSeen(netns, ip, nft);
  return {
    end: async () => {
      // What was told before the second beacon has been read then.
      await beaconSeen(netns, ip, nft);
      await Promise.all([ip.stop('SIGTERM'), nft.stop('SIGTERM')]);
      // A link takes two lines; the second begins with blanks.
      const lines = ip.stdout.split('\n').filter((line) => line !== '' && !line.includes(BEACON));
      const isDeletion = (line: string): boolean => line.startsWith('Deleted');
      const isChange = (line: string): boolean => !isDeletion(line) && /\bproto 84\b/.test(line);
      const firstDeletion = lines.findIndex(isDeletion);
      return {
        deletions: lines.filter(isDeletion),
        changes: lines.filter(isChange),
        isAddedFirst: firstDeletion === -1 || lines.findLastIndex(isChange) < firstDeletion,
        nft: nft.stdout.split('\n').filter((line) => line.includes('tke_eni')),
      };
    },
  };
}

async function beaconSeen(netns: NetnsView, ip: Child, nft: Child): Promise<void> {
  const count = (child: Child, text: string): number => child.stdout.split(text).length - 1;
  const before = [count(ip, BEACON), count(nft, BEACON_TABLE)] as const;
  await waitUntil(
    async () => {
      await netns.ip('route', 'add', `${BEACON}/32`, 'dev', 'lo');
      await netns.ip('route', 'delete', `${BEACON}/32`, 'dev', 'lo');
      await netns.nft(`table inet ${BEACON_TABLE}\ndelete table inet ${BEACON_TABLE}\n`);
      await netns.nft(`add table inet ${BEACON_TABLE}\n`);
      await netns.nft(`delete table inet ${BEACON_TABLE}\n`);
      return count(ip, BEACON) > before[0] && count(nft, BEACON_TABLE) > before[1];
    },
    { what: 'a monitor that sees', everyMs: 50, explain: () => `${ip.stderr}${nft.stderr}` },
  );
}
