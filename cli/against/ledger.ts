/** What somebody else says that this node has: the cluster's NodeENIConfig, or the cloud. */
export type Ledger = {
  readonly source: 'nec' | 'cloud';
  /** For people: 'NodeENIConfig n1', 'the cloud'. */
  readonly title: string;
  readonly enis: readonly LedgerEni[];
  /** True when ENIs that are missing here are certainly not the node's. */
  readonly isWhole: boolean;
  /** Of the NodeENIConfig. */
  readonly epoch?: number;
};

/** One ENI as the ledger has it. */
export type LedgerEni = {
  readonly eniId: string;
  /** Lower case. */
  readonly mac: string;
  readonly isAttached: boolean;
  /** In the ledger's own words. */
  readonly state: string;
  /** Its own addresses. */
  readonly primaries: readonly string[];
  readonly addresses: readonly LedgerAddress[];
};

/** An address for a Pod. */
export type LedgerAddress = {
  readonly ip: string;
  /** Undefined where the ledger has no such thing. */
  readonly assignmentId?: string;
  /** True when it stays the ENI's. */
  readonly isFirm: boolean;
  /** In the ledger's own words. */
  readonly state: string;
};
