import { isRecord } from '../runtime/decode.ts';

/**
 * Returns the names of the networks in a Pod's annotation, without namespaces and interfaces; empty when it cannot be
 * read.
 * @see https://github.com/k8snetworkplumbingwg/multi-net-spec: `[namespace/]name[@interface],...` or a JSON list
 */
export function readNetworks(text: string): readonly string[] {
  if (text.trim() === '') return [];
  if (!text.trim().startsWith('[')) return text.split(',').map((one) => nameOf(one.trim()));
  try {
    const listed: unknown = JSON.parse(text);
    if (!Array.isArray(listed)) return [];
    const names = listed.map((one: unknown) => (isRecord(one) ? one['name'] : undefined));
    return names.filter((name) => typeof name === 'string');
  } catch {
    // A malformed list names no network. The Pod gets no network until the annotation is corrected.
    return [];
  }
}

/**
 * Extracts the name without a regular expression. The text may be a quarter of a megabyte, and a pattern would scan it
 * again for each `@`.
 */
function nameOf(network: string): string {
  const name = network.slice(network.indexOf('/') + 1);
  const at = name.indexOf('@');
  return at === -1 ? name : name.slice(0, at);
}
