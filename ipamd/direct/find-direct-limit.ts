/** Most exclusive ENIs of an instance family, by its cores: each line holds from so many cores on. */
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

/** Families that the product serves exclusive ENIs on. */
const FAMILIES: Readonly<Record<string, FamilyLimits>> = {
  S5: STANDARD_5,
  SA2: STANDARD_5,
  IT5: STANDARD_5,
  SA3: STANDARD_AMD_3,
};

/** An instance, as far as its exclusive ENIs hang on it. */
export type DirectLimitFacts = {
  /** Such as S5.MEDIUM2. */
  readonly instanceType: string;
  readonly cores: number;
  /** ENIs that it may have besides its primary one, shared ones included. */
  readonly secondaryEnis: number;
};

/**
 * Finds the most exclusive ENIs that an instance may have: what its family may, and never more than the ENIs that the
 * cloud lets it have at all. Of a family that the table does not have only the latter counts. Pure.
 * @see https://cloud.tencent.com/document/product/457/50357 (limits on the number of Pods in VPC-CNI)
 */
export function findDirectLimit({ instanceType, cores, secondaryEnis }: DirectLimitFacts): number {
  const [family = ''] = instanceType.split('.');
  const line = FAMILIES[family]?.findLast(({ fromCores }) => cores >= fromCores);
  return Math.max(0, Math.min(secondaryEnis, line?.enis ?? secondaryEnis));
}

/** Tells whether a node serves exclusive ENIs: by its label, else as the flag says. Pure. */
export function findDirectServed(label: string | undefined, flag: boolean): boolean {
  if (label === 'true') return true;
  return label === 'false' ? false : flag;
}
