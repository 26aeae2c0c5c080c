/**
 * Finds the entry of a configuration for a url of a load balancer: the one that has this very url, or else the one of its
 * path. People write paths of the Ingress: `/a` is for each rule of the path, `=/a` and `/a/` as well as `/a`. One that begins with
 * `=` is for that url alone.
 */
export function findRuleEntry<T extends { readonly url: string }>(entries: readonly T[], url: string): T | undefined {
  const path = pathOf(url);
  return (
    entries.find((entry) => entry.url === url) ??
    entries.find((entry) => !entry.url.startsWith('=') && pathOf(entry.url) === path)
  );
}

/** Returns the path that a url of a load balancer is for: `/a` for `=/a`, `/a/` and `/a`. */
export function pathOf(url: string): string {
  const bare = url.replace(/^=/, '').replace(/\/+$/, '');
  return bare === '' ? '/' : bare;
}
