type Entry = { readonly url: string };

/** Finds the entry of a configuration for a url of a load balancer; undefined: it has none. */
type FindEntry<T> = (url: string) => T | undefined;

/**
 * Indexes entries of a configuration: for a url of a load balancer the first one that has this very url counts, or else the
 * first one of its path. People write paths of the Ingress: `/a` is for each rule of the path, `=/a` and `/a/` as well as
 * `/a`. One that begins with `=` is for that url alone.
 */
export function indexRuleEntries<T extends Entry>(entries: readonly T[]): FindEntry<T> {
  const byUrl = firstBy(entries, ({ url }) => url);
  const byPath = firstBy(
    entries.filter(({ url }) => !url.startsWith('=')),
    ({ url }) => pathOf(url),
  );
  return (url) => byUrl.get(url) ?? byPath.get(pathOf(url));
}

/** Returns the path that a url of a load balancer is for: `/a` for `=/a`, `/a/` and `/a`. */
export function pathOf(url: string): string {
  const bare = url.replace(/^=/, '').replace(/\/+$/, '');
  return bare === '' ? '/' : bare;
}

/** Indexes items by a text; of several the first one counts. */
export function firstBy<T>(items: readonly T[], textOf: (item: T) => string): ReadonlyMap<string, T> {
  return new Map(items.toReversed().map((item) => [textOf(item), item]));
}
