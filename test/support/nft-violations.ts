import type { NftFacts } from './kernel-facts.ts';

/** What our nftables table is judged by. */
export type NftScope = {
  readonly isCompact: boolean;
  readonly isNodePort: boolean;
  /** Bits of the packet mark that are the ENIs'. */
  readonly mask: number;
  readonly enis: readonly { readonly table: number; readonly mark: number }[];
};

/** Judges our nftables table: one line and one chain for each ENI, marks in compact mode alone, nothing left over. */
export function findNftViolations(scope: NftScope, nft: NftFacts | undefined): readonly string[] {
  if (nft === undefined) return ['nft: table inet tke_eni is missing'];
  const tables = new Set(scope.enis.map(({ table }) => table));
  return [
    ...scope.enis.flatMap((eni) => eniViolations(scope, nft, eni)),
    ...nft.groups
      .filter(([group]) => !tables.has(group))
      .map(([group]) => `nft: a line leads link group ${group}, which no ENI has`),
    ...nft.chains
      .filter((chain) => /^(eni|via)_/.test(chain) && !tables.has(Number(chain.slice(4))))
      .map((chain) => `nft: chain ${chain} is of no ENI`),
    ...[...nft.rules].flatMap(([chain, rules]) =>
      rules
        .filter((rule) => isForeignVerdict(chain, rule))
        .map((rule) => `nft: chain ${chain} has a verdict that we do not write: ${rule}`),
    ),
  ];
}

/** Reports whether a rule ends a packet's way as no rule of ours does: ours drop forged IPv6 sources, what would leave by an uplink again, and copies for connection tracking alone. */
function isForeignVerdict(chain: string, rule: string): boolean {
  const isSourceCheck = rule.includes('"fib"') && rule.includes('"drop"');
  const isReturned =
    chain === 'returned' && ['"iifname"', '"oifname"', '"status"', '"drop"'].every((part) => rule.includes(part));
  const isCopy =
    chain === 'closing' &&
    /"(?:ttl|hoplimit)"\}\},"right":0\}\},\{"drop":null\}\]$/.test(rule) &&
    rule.includes('"fin"');
  return !isSourceCheck && !isReturned && !isCopy && /"(?:drop|accept|reject|queue)":/.test(rule);
}

function eniViolations(
  { isCompact, isNodePort, mask, enis }: NftScope,
  nft: NftFacts,
  { table, mark }: NftScope['enis'][number],
): readonly string[] {
  const chain = `eni_${table}`;
  const led = nft.groups.filter(([group]) => group === table);
  const rules = nft.rules.get(chain) ?? [];
  const sets = (ofChain: string): boolean =>
    (nft.markStatements.get(ofChain) ?? []).some(
      // Other programs' bits stay as they are.
      (statement) => statement(0) === mark && statement(0xffffffff) === (~mask | mark) >>> 0,
    );
  const missing = [
    ...(rules.some((rule) => rule.includes('"fib"') && rule.includes('"drop"')) ? [] : ['the check of IPv6 sources']),
    ...(isNodePort &&
    !rules.some((rule) => rule.includes('{"ct":{"key":"mark"}}') && rule.includes('"mangle"') && /\b128\b/.test(rule))
      ? ['the mark of NodePort answers']
      : []),
    ...(isNodePort && isCompact && !enis.every((via) => rules.some((rule) => leadsTo(rule, via)))
      ? ['the way of answers by another ENI']
      : []),
  ];
  return [
    ...(led.length === 1 && led[0]?.[1] === chain
      ? []
      : [`nft: link group ${table} is led to [${led.map(([, target]) => target)}], not to [${chain}]`]),
    ...(isCompact === sets(chain)
      ? []
      : [`nft: chain ${chain} ${isCompact ? 'does not set' : 'sets, in per-pod mode,'} mark 0x${mark.toString(16)}`]),
    ...(sets(`via_${table}`) || !isCompact ? [] : [`nft: chain via_${table} sets no mark`]),
    ...missing.map((what) => `nft: chain ${chain} lacks ${what}`),
  ];
}

function leadsTo(rule: string, via: { readonly table: number; readonly mark: number }): boolean {
  return rule.includes(`[${via.mark},{"jump":{"target":"via_${via.table}"}}]`);
}
