import { NetnsView } from '../support/netns.ts';

/** A host beyond the VPC: what leaves the VPC unchanged arrives here, and is answered. */
export type OutsideHost = {
  readonly netns: NetnsView;
  readonly ip: string;
  readonly ipv6: string;
  /** `ip` lines, run in any namespace, that connect it to the router. */
  linkLines(router: NetnsView): readonly string[];
  /** Configures its end. Called once, when the VPC comes up. */
  start(): Promise<void>;
};

/** Interface name of the router's side. */
const ROUTER_SIDE = 'outside';

// Documentation prefixes (RFC 5737, RFC 3849): never part of a VPC.
const ROUTER = { ip: '203.0.113.1', ipv6: '2001:db8:ffff::1' };
const HOST = { ip: '203.0.113.10', ipv6: '2001:db8:ffff::10' };

/** Describes the outside host; `start` configures it once its link is there. */
export function createOutsideHost(name: string): OutsideHost {
  const netns = new NetnsView(name);
  return {
    netns,
    ...HOST,
    linkLines: (router) => [
      `link add name ${ROUTER_SIDE} netns ${router.name} type veth peer name eth0 netns ${netns.name}`,
    ],
    start: () =>
      netns.ipBatch([
        'link set lo up',
        'link set eth0 up',
        `address add ${HOST.ip}/24 dev eth0`,
        `address add ${HOST.ipv6}/64 dev eth0 nodad`,
        `route add default via ${ROUTER.ip}`,
        `route add default via ${ROUTER.ipv6}`,
      ]),
  };
}

/** `ip` lines, run in the router, that configure its side. */
export function outsideRouterLines(): readonly string[] {
  return [
    `address add ${ROUTER.ip}/24 dev ${ROUTER_SIDE}`,
    `address add ${ROUTER.ipv6}/64 dev ${ROUTER_SIDE} nodad`,
    // Neighbour solicitations come from a link-local address.
    `address add fe80::1/64 dev ${ROUTER_SIDE} nodad`,
    `link set ${ROUTER_SIDE} up`,
  ];
}
