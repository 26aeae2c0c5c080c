import { recordOf } from '../../runtime/json.ts';
/** A chain of nftables with the statements of its rules. */
export type NftChain = {
  readonly family: 'ip' | 'ip6' | 'inet' | 'netdev';
  readonly table: string;
  readonly name: string;
  /** Type of a base chain; undefined for a chain that is only a jump target. */
  readonly type: string | undefined;
  readonly hook: string | undefined;
  /** Links of a base chain at ingress or egress; undefined where it has none. */
  readonly devices: readonly string[] | undefined;
  /** 'accept', 'drop'. */
  readonly policy: string;
  /** Place of a base chain among those of its hook; 0 where it has none. */
  readonly priority: number;
  /** Statements of each rule. */
  readonly rules: readonly (readonly unknown[])[];
};

const FAMILIES = ['ip', 'ip6', 'inet', 'netdev'] as const;

/**
 * Returns the chains of `nft -j list ruleset` with their rules; chains of other families are left out.
 * @see libnftables-json(5)
 */
export function parseNftChains(objects: readonly Readonly<Record<string, unknown>>[]): readonly NftChain[] {
  const rules = new Map<string, unknown[][]>();
  for (const { family, table, chain, expr } of objects.map(({ rule }) => recordOf(rule))) {
    if (!Array.isArray(expr)) continue;
    const key = `${family} ${table} ${chain}`;
    const ofChain = rules.get(key);
    if (ofChain === undefined) rules.set(key, [expr]);
    else ofChain.push(expr);
  }
  return objects.flatMap((object): readonly NftChain[] => {
    const { family, table, name, type, hook, policy, dev, prio } = recordOf(object['chain']);
    const known = FAMILIES.find((each) => each === family);
    if (known === undefined) return [];
    return [
      {
        ...{ family: known, table: String(table), name: String(name), policy: String(policy ?? 'accept') },
        type: typeof type === 'string' ? type : undefined,
        hook: typeof hook === 'string' ? hook : undefined,
        priority: typeof prio === 'number' ? prio : 0,
        devices: dev === undefined ? undefined : [dev].flat().map(String),
        rules: rules.get(`${family} ${table} ${name}`) ?? [],
      },
    ];
  });
}
