/** The host's end of a Pod's link that is a port of the bridge. */
export type PortEvidence = {
  readonly ifindex: number;
  readonly name: string;
  readonly mac: string;
  readonly mtu: number;
};

/** One veth interface with an IPv4 address in a network namespace that is not the host's. */
export type PodInterface = {
  /** Path of its namespace, as the runtime or `/run/netns` names it. */
  readonly netns: string;
  readonly ifName: string;
  readonly ifindex: number;
  readonly mac: string;
  /** Interface index of its peer, in the peer's namespace. */
  readonly peerIfindex: number;
  readonly addresses: readonly { readonly ip: string; readonly prefixLength: number }[];
  /** Next hop of its default route. */
  readonly gateway?: string;
};

/** What the network namespaces of a node hold. */
export type NetnsEvidence = {
  readonly interfaces: readonly PodInterface[];
  /** False when some namespace could not be read: an address that was not found may be in it. */
  readonly isComplete: boolean;
};
