import type { SubnetChoice } from '../decide/node-view.ts';

/** A subnet with its described fields. */
export type KnownSubnet = SubnetChoice & { readonly zone: string; readonly vpcId: string };

/** What the subnets for one node's new ENIs depend on. */
export type ChoiceFacts = {
  /** Subnets of the cluster's configuration, in order. */
  readonly configured: readonly string[];
  /** --only-nominated-eni-subnets. */
  readonly onlyNominated: ReadonlySet<string>;
  /** `spec.subnetIDs` of the NodeENIConfig. */
  readonly ofConfig: readonly string[] | undefined;
  /** The Node's label. */
  readonly ofLabel: readonly string[];
  readonly zone: string;
  readonly vpcId: string;
  /** Undefined for a subnet that the cloud does not have, or that was not described yet. */
  readonly find: (subnetId: string) => KnownSubnet | undefined;
};

/** The subnets of one node. */
export type Choices = {
  /** In order; empty when none is in the node's zone. */
  readonly subnets: readonly SubnetChoice[];
  /** Named for this node, and unknown. */
  readonly unknown: readonly string[];
  /**
   * Named for this node, but unusable: those of another VPC, and, if no usable one is left, those of another zone. One
   * list for nodes of several zones is no fault.
   */
  readonly elsewhere: readonly KnownSubnet[];
};

/**
 * Decides in which subnets a node's new ENIs may be: those that are named for it, in the spec before the label, else
 * those of the cluster without the nominated-only ones; in its own zone and VPC.
 */
export function decideChoices(facts: ChoiceFacts): Choices {
  const named = namedOf(facts);
  const ids = named ?? facts.configured.filter((id) => !facts.onlyNominated.has(id));
  const known = ids.flatMap((id) => facts.find(id) ?? []);
  const isHere = (subnet: KnownSubnet) => subnet.zone === facts.zone && subnet.vpcId === facts.vpcId;
  const subnets = known
    .filter(isHere)
    .map(({ subnetId, cidr, freeIps, isBlocked }) => ({ subnetId, cidr, freeIps, isBlocked }));
  const isUnusable = (subnet: KnownSubnet) => subnet.vpcId !== facts.vpcId || (subnets.length === 0 && !isHere(subnet));
  return {
    subnets,
    unknown: (named ?? []).filter((id) => facts.find(id) === undefined),
    elsewhere: named === undefined ? [] : known.filter(isUnusable),
  };
}

function namedOf({ ofConfig = [], ofLabel }: ChoiceFacts): readonly string[] | undefined {
  if (ofConfig.length > 0) return ofConfig;
  return ofLabel.length > 0 ? ofLabel : undefined;
}
