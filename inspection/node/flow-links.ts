import { FLOWTABLE_TABLE } from '../../dataplane/numbers.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { NftFacts } from './node-facts.ts';

/**
 * Returns the names of the links that the flowtable of the fast path has, sorted; undefined where the node has no such table.
 * Names of links that are gone stay in it from kernel 6.16 on.
 * @param objects what `nft -j list ruleset` lists
 */
export function flowLinksOf(objects: NftFacts['objects']): readonly string[] | undefined {
  const flowtables = objects.flatMap(({ flowtable }) =>
    isRecord(flowtable) && flowtable['family'] === 'inet' && flowtable['table'] === FLOWTABLE_TABLE ? [flowtable] : [],
  );
  if (flowtables.length === 0) return undefined;
  // One device is a text, many are a list, none is left out.
  const names = flowtables.flatMap(({ dev }) => dev).filter((name) => typeof name === 'string');
  return [...new Set(names)].sort();
}
