/**
 * The numbers that identify the kernel state of this project: priorities, tables, marks, protocol, names. They are in
 * one file because two programs that disagree on one of them would break each other's Pods.
 */

/**
 * rtm_protocol and FRA_PROTOCOL of everything this project writes; free in iproute2's rt_protos. Only objects with it
 * are deleted.
 * @see rtnetlink(7)
 */
export const RTPROT_TKE_ENI = 84;

/**
 * Priorities of policy rules. 512, 1024 and 1536 are those of Tencent's product; 1280 and 1537 are free in its scheme.
 * @see ip-rule(8)
 */
export const PRIORITY = {
  /** compact: one rule that looks up the table of all Pod host routes; a miss falls through. */
  podHostRoutes: 512,
  /** per-pod: `to <pod> lookup main`. */
  toPod: 512,
  /** GR: `to <podCIDR> lookup main`, so that route-eni and bridge Pods of one node reach each other. */
  podCidr: 1024,
  /** `fwmark 0x80/0x80 lookup main`: replies leave by the link that the request came in by, as those of the node do. */
  nodePort: 1280,
  /**
   * `lookup 4001`: addresses of this node that no Pod's route has led to before. It shares the number of another rule of ours,
   * so that a release that does not plan it deletes it.
   */
  podless: 1280,
  /** `lookup 3997`: networks that are connected to the node by a third link; a miss falls through. It shares the number for the same reason. */
  connectedNetworks: 1280,
  /** compact: `fwmark <slot>/<mask> lookup T`, one per ENI. */
  eniMark: 1536,
  /** per-pod: `from <pod> lookup T`. */
  fromPod: 1536,
  /** `from <ENI primary address> lookup T`: packets from an ENI's own address leave by that ENI. */
  fromEniPrimary: 1537,
} as const;

/** Every priority of our rules; rules with another priority are never deleted. */
export const OUR_PRIORITIES: readonly number[] = [...new Set<number>(Object.values(PRIORITY))];

/** RT_TABLE_MAIN. @see uapi/linux/rtnetlink.h */
export const TABLE_MAIN = 254;

/** compact: the table of all Pod host routes. */
export const TABLE_POD_ROUTES = 3999;

/** The table of networks that are connected to the node by a link that is neither the primary interface nor an ENI. */
export const TABLE_CONNECTED = 3997;

/** Link group of the side links of exclusive ENIs. It is neither an ENI's table nor its mark. */
export const DIRECT_LINK_GROUP = 3998;

/** Name of the bridge of GlobalRoute Pods. */
export const BRIDGE_NAME = 'cbr0';

/**
 * Interface index of the bridge that we make. The kernel counts indexes up from 1, so it gives this one to no other
 * link; the plan can name the bridge before it exists, and a bridge with another index was made by another program.
 */
export const BRIDGE_IFINDEX = 1_000_001_024;

/**
 * MAC of the bridge that we make. No packet with it leaves the node. A bridge without a MAC of its own has the lowest of
 * its ports, and Pods would have to ask for their gateway again when that changes.
 */
export const BRIDGE_MAC = '0a:58:00:00:00:01';

/** Metric of the route that refuses packets to addresses of a block that no Pod has: after all others. */
export const UNREACHABLE_METRIC = 0x7fffffff;

/** Metric of our route of a block to the bridge: after the kernel's own, before the one that refuses. */
export const BLOCK_METRIC = UNREACHABLE_METRIC - 1;

/** Metric of the route in main that refuses packets to one Pod's address: the one of a block shows a block of the node. */
export const POD_UNREACHABLE_METRIC = UNREACHABLE_METRIC - 2;

/** IFLA_IFALIAS of the bridge that we made; only this one is deleted by an uninstall. */
export const BRIDGE_ALIAS = 'tke-eni-bridge';

/**
 * An ENI's table is this plus the interface index of its first set-up; it stays the same for the ENI's lifetime. Tables
 * below 2006 are Cilium's.
 */
export const TABLE_ENI_BASE = 4000;

/**
 * The table of routes that refuse packets to addresses of this node without a Pod. No ENI has it: the interface index 1 is
 * that of `lo`.
 */
export const TABLE_PODLESS = TABLE_ENI_BASE + 1;

/** Connection and packet mark of what came in by a link that is neither an ENI nor a Pod's: mostly the primary interface; one bit. */
export const NODEPORT_MARK = 0x80;

/** Mark of a packet whose flow the fast path may learn; set in our forward chain, one bit. */
export const FAST_PATH_MARK = 0x100;

/** Names of the fast path's programs, and so of their filters (TCA_BPF_NAME): a filter with one of them is ours. */
export const FLOW_PROGRAM_NAME = { fast: 'tke_fast', learn: 'tke_learn' } as const;

/** Priority (`pref`) and handle of the fast path's traffic filters; one of each on a link and direction. */
export const FLOW_FILTER = { priority: 84, handle: 1 } as const;

/** The bits of the packet mark that hold an ENI's slot. */
export const DEFAULT_ENI_MARK_MASK = 0x00ff0000;

/** kube-proxy's mark bits (0x4000 masquerade, 0x8000 drop): an ENI mask must not use them. */
export const KUBE_PROXY_MARKS = 0xc000;

/** Slots of ENIs on one node; 0 is "no ENI". More ENIs than this fit no instance type. */
export const MAX_ENI_SLOT = 255;

/**
 * The Pod's IPv4 gateway: a permanent neighbour with the host veth's MAC. No interface has the address, and no ARP
 * request is sent for it.
 */
export const POD_GATEWAY_IPV4 = '169.254.1.1';

/** The Pod's IPv6 gateway, likewise. */
export const POD_GATEWAY_IPV6 = 'fe80::1';

/**
 * Link-local IPv4: a Pod with an exclusive ENI reaches the cloud's services there (metadata, registries, the API
 * server) through the node.
 */
export const LINK_LOCAL_IPV4 = '169.254.0.0/16';

/** Name of our nftables table of marks and checks, family inet. */
export const NFT_TABLE = 'tke_eni';

/** Name of the nftables table that holds the flowtable, family inet: one of its own, because a kernel may lack flowtables. */
export const FLOWTABLE_TABLE = 'tke_eni_flows';

/** Reports whether routes in `table` may be ours: a table of the node, or that of some ENI. */
export function isOurTable(table: number): boolean {
  return table === TABLE_POD_ROUTES || table === TABLE_CONNECTED || table > TABLE_ENI_BASE;
}

/** Reports whether `table` may be the table of some ENI. */
export function isEniTable(table: number): boolean {
  return table > TABLE_ENI_BASE && table !== TABLE_PODLESS;
}
