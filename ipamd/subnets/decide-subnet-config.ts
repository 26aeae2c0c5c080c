import { describeValue, type Fault, MAX_FAULTS, renderFault } from '../../runtime/decode.ts';
import { joinLimited } from '../../runtime/limit-text.ts';

/** Content of the ConfigMap `tke-eni-ipamd`. */
export type SubnetConfig = {
  /** In the order of the list, each once. */
  readonly subnetIds: readonly string[];
  readonly vpcId?: string;
};

/** Result of reading a ConfigMap. */
type ReadSubnetConfig = {
  readonly config: SubnetConfig;
  /** Faults; `config` has the valid rest. */
  readonly faults: readonly Fault[];
  /** Accepted content without effect, reported once. */
  readonly notes: readonly string[];
};

/** The keys of the ConfigMap. */
export const CONFIG_KEY = {
  subnets: 'TKE_ENI_IPAMD_SUBNET_ID',
  vpc: 'TKE_ENI_IPAMD_VPC_ID',
  zone: 'TKE_ENI_IPAMD_ZONE',
} as const;

/** The form of a subnet's id in the ConfigMap. */
export const SUBNET = /^subnet-[a-z0-9]{4,32}$/;
/** Most subnets that are read. A VPC has 100 of them; each pass describes all that are named. */
export const MAX_SUBNETS = 1_000;

/** The form of a VPC's id there. */
export const VPC = /^vpc-[a-z0-9]{4,32}$/;

/** Reads the subnets of the ConfigMap, a list joined by colons, and lists every fault. */
export function readSubnetConfig(data: Readonly<Record<string, unknown>> | undefined): ReadSubnetConfig {
  const faults: Fault[] = [];
  const text = data?.[CONFIG_KEY.subnets];
  const items = typeof text === 'string' ? text.split(':').map((item) => item.trim()) : [];
  const named = [...new Set(items.filter((item) => SUBNET.test(item)))];
  const subnetIds = named.slice(0, MAX_SUBNETS);
  const path = `data.${CONFIG_KEY.subnets}`;
  // A colon at the end, or two in a row, is accepted.
  const wrong = items.filter((one) => one !== '' && !SUBNET.test(one));
  for (const item of wrong.slice(0, MAX_FAULTS))
    faults.push({
      path,
      expected: 'a list of subnets such as subnet-a1b2c3d4:subnet-e5f6a7b8',
      got: describeValue(item),
    });
  if (named.length > MAX_SUBNETS)
    faults.push({ path, expected: `at most ${MAX_SUBNETS} subnets`, got: `${named.length} subnets` });
  if (subnetIds.length === 0 && faults.length === 0)
    faults.push({ path, expected: 'at least one subnet', got: describeValue(text) });
  const vpc = data?.[CONFIG_KEY.vpc];
  const isVpc = typeof vpc === 'string' && VPC.test(vpc.trim());
  if (!isVpc && vpc !== undefined && vpc !== '')
    faults.push({ path: `data.${CONFIG_KEY.vpc}`, expected: 'a VPC such as vpc-a1b2c3d4', got: describeValue(vpc) });
  const notes =
    data?.[CONFIG_KEY.zone] === undefined
      ? []
      : [`${CONFIG_KEY.zone} has no effect: the zone of each subnet is read from the cloud`];
  return { config: { subnetIds, ...(isVpc ? { vpcId: vpc.trim() } : {}) }, faults, notes };
}

/** The form of a zone's name; TKE writes numbers as well, which the subnets do not have. */
const ZONE = /^[a-z]+(-[a-z]+)+-\d+$/;

/**
 * Compares the zones that the ConfigMap lists with those of its subnets: the list has no effect, and who wrote it may think that
 * it has. @returns the sentence; undefined: there is no list of names, or it says the same
 */
export function findZoneContradiction(
  list: unknown,
  subnets: readonly { readonly subnetId: string; readonly zone: string }[],
): string | undefined {
  const items = typeof list === 'string' ? list.split(/[:,]/).map((item) => item.trim()) : [];
  const listed = new Set(items.filter((item) => item !== ''));
  if (listed.size === 0 || subnets.length === 0 || ![...listed].every((item) => ZONE.test(item))) return undefined;
  const others = subnets
    .filter(({ zone }) => !listed.has(zone))
    .map(({ subnetId, zone }) => `${subnetId} is in ${zone}`);
  const empty = [...listed].filter((name) => !subnets.some(({ zone }) => zone === name));
  const found = [...others, ...empty.map((name) => `no subnet is in ${name}`)];
  return found.length === 0
    ? undefined
    : `${CONFIG_KEY.zone} has no effect and contradicts the subnets: ${joinLimited(found)}; the zone of each subnet counts`;
}

/**
 * Reads the label of a Node that names subnets, joined by `_` or `.`; `invalid` contains texts that are no subnet ids.
 */
export function readSubnetLabel(label: string | undefined): {
  readonly subnetIds: readonly string[];
  readonly invalid: readonly string[];
} {
  const items = (label ?? '').split(/[_.]/).filter((item) => item !== '');
  return {
    subnetIds: [...new Set(items.filter((item) => SUBNET.test(item)))],
    invalid: items.filter((item) => !SUBNET.test(item)),
  };
}

/**
 * Renders the problems of a ConfigMap for people; `inForce` are the subnets that ENIs are made in despite them, those of the
 * last good ConfigMap where it is kept, `vpcIds` the VPCs that were searched for the others.
 */
export function renderConfigProblems(
  faults: readonly Fault[],
  unknown: readonly string[],
  inForce: { readonly subnetIds: readonly string[]; readonly isKept: boolean },
  vpcIds: readonly string[] = [],
): readonly { readonly reason: 'ConfigInvalid' | 'SubnetUnknown'; readonly message: string }[] {
  const where = vpcIds.length === 0 ? 'the cloud' : joinLimited(vpcIds);
  const effect = effectOf(inForce, where);
  const detail = joinLimited(faults.map(renderFault), '; ');
  return [
    ...(faults.length === 0 ? [] : [{ reason: 'ConfigInvalid', message: `${detail}; ${effect}` } as const]),
    ...(unknown.length === 0
      ? []
      : [{ reason: 'SubnetUnknown', message: `${where} has no ${joinLimited(unknown)}; ${effect}` } as const]),
  ];
}

function effectOf(
  { subnetIds, isKept }: { readonly subnetIds: readonly string[]; readonly isKept: boolean },
  where: string,
): string {
  if (subnetIds.length > 0) return isKept ? `${joinLimited(subnetIds)} stay in force` : 'the rest is used';
  return `no subnet is left, and nodes that name none get no addresses: set data.${CONFIG_KEY.subnets} to ids of subnets of ${where}`;
}

/** Whether a configuration comes into force. */
type Adoption =
  | { readonly kind: 'adopt'; readonly config: SubnetConfig; readonly unknown: readonly string[] }
  /** The last good one stays in force. */
  | { readonly kind: 'keep'; readonly unknown: readonly string[] };

/**
 * Decides whether a configuration comes into force. One with faults, or with subnets that the cloud does not have, does
 * not while there is a last good one. The very first one comes into force with its good part, because otherwise there
 * would be none.
 */
export function decideAdoption(facts: {
  readonly candidate: SubnetConfig;
  readonly hasFaults: boolean;
  readonly lastGood: SubnetConfig | undefined;
  /** Reports whether the cloud has a subnet. */
  readonly isKnown: (subnetId: string) => boolean;
}): Adoption {
  const { candidate, lastGood } = facts;
  const unknown = candidate.subnetIds.filter((id) => !facts.isKnown(id));
  const isGood = !facts.hasFaults && unknown.length === 0;
  const goodPart = { ...candidate, subnetIds: candidate.subnetIds.filter((id) => facts.isKnown(id)) };
  // The good part of the first one is in force already from an earlier pass.
  const isInForce = JSON.stringify(goodPart) === JSON.stringify(lastGood);
  if (isGood || isInForce || lastGood === undefined) return { kind: 'adopt', config: goodPart, unknown };
  return { kind: 'keep', unknown };
}
