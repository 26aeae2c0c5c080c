import { isHostVethName, parseHostVethAlias } from '../../dataplane/host-veth-name.ts';
import { PRIORITY, RTPROT_TKE_ENI, TABLE_MAIN } from '../../dataplane/numbers.ts';
import type { HostDump } from './read-evidence.ts';

/**
 * Finds addresses of Pods that the product's agent has wired: both of its rules, and a host route to a link with a name of its
 * form that has no alias of ours. Nothing of it has our protocol. What an ended Pod left has no link, and counts for nothing.
 */
export function findProductPods({ links, routes, rules }: Readonly<HostDump>): readonly string[] {
  const foreign = rules.filter(({ protocol }) => protocol !== RTPROT_TKE_ENI);
  const to = foreign.filter(({ priority, table }) => priority === PRIORITY.toPod && table === TABLE_MAIN);
  const from = new Set(
    foreign
      .filter(({ priority, table }) => priority === PRIORITY.fromPod && table !== TABLE_MAIN)
      .map(({ src }) => src),
  );
  const isOfProduct = (ifindex: number | undefined): boolean =>
    links.some(
      (link) =>
        link.ifindex === ifindex && isHostVethName(link.ifname) && parseHostVethAlias(link.ifalias ?? '') === undefined,
    );
  const wired = to.filter(
    ({ dst }) =>
      dst !== undefined &&
      from.has(dst) &&
      routes.some((route) => route.dst === dst && route.protocol !== RTPROT_TKE_ENI && isOfProduct(route.oif)),
  );
  return [...new Set(wired.map(({ dst }) => (dst ?? '').split('/')[0] ?? ''))].sort();
}
