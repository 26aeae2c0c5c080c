import { createUnnamedNetns } from '../../../netlink/netns.ts';
import type { Request } from '../../../netlink/request.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import type { Clock } from '../../../runtime/clock.ts';

/** Durations of netlink requests, milliseconds. */
type NetlinkTimes = {
  readonly routes: number;
  /** Adding all routes in one batch. */
  readonly addMs: number;
  /** Replacing each route, one request at a time. */
  readonly replaceMs: readonly number[];
  /** Reading all routes. */
  readonly dumpMs: readonly number[];
  readonly deleteMs: number;
};

const TABLE = 4001;
const DUMPS = 10;

/**
 * Writes, reads and deletes `count` routes in a network namespace of its own, which is deleted afterwards.
 * @throws NetlinkError, NetnsError
 */
export function benchNetlink(count: number, clock: Pick<Clock, 'monotonicMs'>): NetlinkTimes {
  using netns = createUnnamedNetns();
  using rtnetlink = openRtnetlinkIn(netns);
  rtnetlink.link.add({ kind: 'bridge', ifname: 'bench0', up: true });
  const oif = rtnetlink.link.list().find(({ ifname }) => ifname === 'bench0')?.ifindex ?? 0;
  const timed = (work: () => unknown): number => {
    const startMs = clock.monotonicMs();
    work();
    return clock.monotonicMs() - startMs;
  };
  const specs = Array.from({ length: count }, (_, index) => ({
    dst: `10.${(index >> 16) & 0xff}.${(index >> 8) & 0xff}.${index & 0xff}/32`,
    oif,
    table: TABLE,
  }));
  const batch = (verb: 'add' | 'delete') => specs.map((spec): Request => ({ object: 'route', verb, spec }));
  const addMs = timed(() => rtnetlink.execute(batch('add'), { stopOnError: true }));
  const replaceMs = specs.map((spec) => timed(() => rtnetlink.route.replace(spec)));
  const dumpMs = Array.from({ length: DUMPS }, () =>
    timed(() => rtnetlink.route.list({ family: AF_INET, table: TABLE })),
  );
  const deleteMs = timed(() => rtnetlink.execute(batch('delete'), { stopOnError: true }));
  return { routes: count, addMs, replaceMs, dumpMs, deleteMs };
}
