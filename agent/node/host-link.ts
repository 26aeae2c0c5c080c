/** A link as the kernel shows it. */
export type HostLink = {
  readonly ifindex: number;
  readonly ifname: string;
  readonly mac?: string;
  /** The MAC of its hardware, which identifies an ENI; absent where it has none of its own. */
  readonly permAddress?: string;
  readonly mtu: number;
  readonly ifalias?: string;
  /** Administrative state; absent when it was not read. */
  readonly isUp?: boolean;
  /** Kind of a software link ('bridge', 'vlan', 'veth', …); absent for hardware. */
  readonly kind?: string;
};
