import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { RTPROT_STATIC } from '../../../netlink/uapi/rtnetlink.ts';
import type { ModelMachine } from '../../../sim/kernel/machine.ts';

/** A network of theirs, and the table of routes that they have for it. */
const NETWORK = '192.168.77';
const TABLE = 77;
/** Beside our rules, one at a priority of ours: a priority is no mark. */
const PRIORITIES = [100, 512, 1536];
const FIREWALL = 'other_firewall';
const RULESET = `table inet ${FIREWALL} {
chain input {
type filter hook input priority 0; policy accept;
}
}
`;

/**
 * Has other programs put on a node what is theirs, as a VPN and a firewall do: an address, routes, rules, a table of nftables.
 * @returns lists what of it is gone, or is no longer as they made it
 */
export function openOtherPrograms(
  kernel: ModelMachine,
  { ifindex, gateway }: { readonly ifindex: number; readonly gateway: string },
): () => readonly string[] {
  const { host } = kernel;
  const { address, route, rule } = kernel.openRtnetlink(host);
  const theirs = (): readonly string[] =>
    [
      ...address.list({ ifindex, family: AF_INET }).map(({ address: ip }) => ['address', ip]),
      ...route.list({ family: AF_INET, protocol: RTPROT_STATIC }).map((one) => ['route', one]),
      ...rule.list({ family: AF_INET, protocol: RTPROT_STATIC }).map((one) => ['rule', one]),
    ].map((one) => JSON.stringify(one));

  address.add({ ifindex, address: `${NETWORK}.1`, prefixlen: 32 });
  for (const spec of [{ dst: '10.99.0.0/16' }, { table: TABLE }])
    route.add({ family: AF_INET, gateway, oif: ifindex, protocol: RTPROT_STATIC, ...spec });
  for (const priority of PRIORITIES)
    rule.add({ family: AF_INET, priority, src: `${NETWORK}.0/24`, table: TABLE, protocol: RTPROT_STATIC });
  const before = theirs();
  let hasRuleset = false;
  void kernel
    .openNft(host)
    .load(RULESET)
    .then(() => {
      hasRuleset = true;
    });
  return () => {
    const now = new Set(theirs());
    const isCut = hasRuleset && kernel.namespace('host')?.nft.get(FIREWALL)?.get('input')?.hook === undefined;
    return [...before.filter((one) => !now.has(one)), ...(isCut ? [`table ${FIREWALL}`] : [])];
  };
}
