import { NFT_TABLE } from '../../../dataplane/numbers.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { rpFilter, sysctlKey } from '../../../sysctl/sysctl-key.ts';
import type { NodeHost } from '../node-host.ts';

/** What somebody does to a node who knows nothing of the agent. */
export const VANDALISM = [
  'a rule',
  'all rules',
  'a route',
  'all routes',
  'the table',
  'a link down',
  'rp_filter',
  'forwarding',
  'a chain',
] as const;
type Vandalism = (typeof VANDALISM)[number];

/** rtm_protocol of the agent's routes and rules. */
const OF_AGENT = 84;

/**
 * Does it to a machine, behind its agent's back.
 * @param draw chooses which of several
 */
export async function vandalise({ kernel }: NodeHost, what: Vandalism, draw: () => number): Promise<void> {
  const { host } = kernel;
  using rtnetlink = kernel.openRtnetlink(host);
  const one = <T>(all: readonly T[]): readonly T[] => {
    const chosen = all[Math.floor(draw() * all.length)];
    return chosen === undefined ? [] : [chosen];
  };
  const rules = rtnetlink.rule.list({ family: AF_INET }).filter(({ protocol }) => protocol === OF_AGENT);
  const routes = rtnetlink.route.list({ family: AF_INET, protocol: OF_AGENT });
  const links = rtnetlink.link.list().filter(({ ifname, kind }) => kind === 'veth' || /^eth[1-9]/.test(ifname));
  const sysctl = kernel.openSysctl(host);
  switch (what) {
    case 'a rule':
    case 'all rules':
      for (const rule of what === 'a rule' ? one(rules) : rules) rtnetlink.rule.delete(rule);
      break;
    case 'a route':
    case 'all routes':
      for (const route of what === 'a route' ? one(routes) : routes) rtnetlink.route.delete(route);
      break;
    case 'the table':
      await kernel.openNft(host).load(`table inet ${NFT_TABLE}\ndelete table inet ${NFT_TABLE}\n`);
      break;
    case 'a link down':
      for (const { ifindex } of one(links)) rtnetlink.link.set({ ifindex, up: false });
      break;
    case 'rp_filter':
      for (const { ifname } of one(links)) sysctl.set(rpFilter(ifname), ifname.startsWith('eth') ? '1' : '0');
      break;
    case 'forwarding':
      for (const { ifname } of one(links)) sysctl.set(sysctlKey('net', 'ipv4', 'conf', ifname, 'forwarding'), '0');
      break;
    case 'a chain': {
      const chains = [...(kernel.namespace('host')?.nft.get(NFT_TABLE)?.keys() ?? [])];
      for (const name of one(chains)) await kernel.openNft(host).load(`flush chain inet ${NFT_TABLE} ${name}\n`);
      break;
    }
  }
}
