import { isRecord } from '../runtime/decode.ts';

/**
 * Names the networks that a Pod's annotation asks for, without their namespaces and interfaces; none where it cannot be
 * read. Pure.
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
    // Nobody can act on it, and the Pod gets no network until it is mended.
    return [];
  }
}

/** Cut by hand: it may be a quarter of a megabyte of anything, and a pattern would go through it for each `@`. */
function nameOf(network: string): string {
  const name = network.slice(network.indexOf('/') + 1);
  const at = name.indexOf('@');
  return at === -1 ? name : name.slice(0, at);
}
