import { familyOf } from '../../dataplane/ip-prefix.ts';
import { NUD_FAILED, NUD_INCOMPLETE, NUD_NOARP, NUD_PERMANENT } from '../../netlink/uapi/neighbour.ts';
import { finding } from '../catalogue/catalogue.ts';
import { sysctlId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { NetnsFacts } from '../node/node-facts.ts';

/** A neighbour that a link of the node should learn by itself. */
type Wanted = {
  readonly ip: string;
  readonly ifindex: number;
  readonly ifname: string;
  /** 'default/web-0', 'the gateway of eni-1 (eth1)'. */
  readonly title: string;
  /** Its MAC; undefined where only the network knows it. */
  readonly mac: string | undefined;
};

/**
 * Finds an entry that another program wrote for a neighbour of the node. The kernel never asks for such a neighbour again,
 * so a wrong MAC stays. Where the MAC is not known, any such entry counts: the agent makes none there.
 */
export function findStaticNeighbour({ neighs }: Pick<NetnsFacts, 'neighs'>, wanted: Wanted): Finding | undefined {
  const { ip, ifindex, ifname, title, mac } = wanted;
  const neigh = neighs.find((each) => each.ifindex === ifindex && each.dst === ip);
  if (neigh?.lladdr === undefined || (neigh.state & (NUD_PERMANENT | NUD_NOARP)) === 0 || neigh.lladdr === mac) {
    return undefined;
  }
  const is = mac === undefined ? 'it is not of ours, and the kernel never asks again' : `${title} has ${mac}`;
  return finding('neigh-wrong-mac', {
    what: `a fixed entry on ${ifname} sends to ${neigh.lladdr} for ${ip} (${title}); ${is}`,
    fix: [`ip neigh del ${ip} dev ${ifname}`, 'stop the program that adds it'],
    subjects: [`neigh:${ifindex}:${ip}`],
    isOurs: false,
  });
}

/**
 * Finds that the neighbour table is full, and lacks one that a packet needs. Entries of Pods count too, and are not counted
 * here: the table is at least that full.
 */
export function findFullTable(
  { neighs, sysctls }: Pick<NetnsFacts, 'neighs' | 'sysctls'>,
  { ip, ifindex }: Pick<Wanted, 'ip' | 'ifindex'>,
): Finding | undefined {
  const family = familyOf(ip);
  const name = `net.ipv${family}.neigh.default.gc_thresh3`;
  const limit = Number(sysctls.get(name) ?? Number.NaN);
  const mine = neighs.find((each) => each.ifindex === ifindex && each.dst === ip);
  const isKnown = mine?.lladdr !== undefined && (mine.state & (NUD_FAILED | NUD_INCOMPLETE)) === 0;
  const entries = neighs.filter(
    ({ dst, state }) => dst.includes(':') === (family === 6) && (state & (NUD_PERMANENT | NUD_NOARP)) === 0,
  ).length;
  if (isKnown || Number.isNaN(limit) || entries < limit) return undefined;
  return finding('neigh-pressure', {
    what: `the IPv${family} neighbour table has ${entries} entries of ${limit}: there is no room for ${ip}`,
    fix: [`sysctl -w ${name}=${limit * 4}`],
    subjects: [sysctlId(name)],
    severity: 'error',
  });
}
