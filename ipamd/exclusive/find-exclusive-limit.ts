/** Limit of exclusive ENIs of an instance family, by its cores: each line applies from its number of cores on. */
type FamilyLimits = readonly { readonly fromCores: number; readonly enis: number }[];

const STANDARD_5: FamilyLimits = [
  { fromCores: 1, enis: 4 },
  { fromCores: 2, enis: 9 },
  { fromCores: 4, enis: 19 },
  { fromCores: 8, enis: 39 },
  { fromCores: 128, enis: 23 },
];
const STANDARD_AMD_3: FamilyLimits = [
  { fromCores: 1, enis: 4 },
  { fromCores: 2, enis: 9 },
  { fromCores: 4, enis: 15 },
];

/** Families on which the product serves exclusive ENIs. */
const FAMILIES: Readonly<Record<string, FamilyLimits>> = {
  S5: STANDARD_5,
  SA2: STANDARD_5,
  IT5: STANDARD_5,
  SA3: STANDARD_AMD_3,
};

/** An instance, with the fields that its limit of exclusive ENIs depends on. */
type ExclusiveLimitFacts = {
  /** For example S5.MEDIUM2. */
  readonly instanceType: string;
  readonly cores: number;
  /** Its limit of ENIs without the primary one, shared ones included. */
  readonly secondaryEnis: number;
  /** Its places of the extension type; 0 when it has none, or the cloud does not name them. */
  readonly extensionEnis: number;
};

/**
 * Finds the limit of exclusive ENIs of an instance: the limit of its family, and never more than its places in
 * the cloud: those of the extension type, or, where there are none, those that shared ENIs use too. For a family that is
 * not in the table only the latter applies.
 * @see https://cloud.tencent.com/document/product/457/50357 (limits on the number of Pods in VPC-CNI)
 */
export function findExclusiveLimit({ instanceType, cores, secondaryEnis, extensionEnis }: ExclusiveLimitFacts): number {
  const places = extensionEnis > 0 ? extensionEnis : secondaryEnis;
  const [family = ''] = instanceType.split('.');
  const line = FAMILIES[family]?.findLast(({ fromCores }) => cores >= fromCores);
  return Math.max(0, Math.min(places, line?.enis ?? places));
}

/** Reports whether a node serves exclusive ENIs: by its label, else by the flag. */
export function isExclusiveServed(label: string | undefined, flag: boolean): boolean {
  if (label === 'true') return true;
  return label === 'false' ? false : flag;
}
