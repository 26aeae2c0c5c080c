import type { ProxyRule } from '../../api/model/clb/proxy-table.ts';

/**
 * The rule of a request; undefined when none fits. First the domain: the exact one, else the longest wildcard, else that of
 * the default rule. Then, of the rules of that domain alone, the path: the exact one, else the first regular expression, else
 * the longest prefix.
 * @param vip the host of rules without a domain
 * @param host without port
 * @param path without query
 */
export function matchRule(rules: readonly ProxyRule[], vip: string, host: string, path: string): ProxyRule | undefined {
  const domain = matchDomain(new Set(rules.map(({ domain: own }) => own)), host === vip ? '' : host.toLowerCase());
  const chosen = domain ?? rules.find(({ isDefault }) => isDefault === true)?.domain;
  if (chosen === undefined) return undefined;
  const own = rules.filter((rule) => rule.domain === chosen);
  return (
    own.find(({ url }) => url === `=${path}`) ??
    own.find(({ url }) => url.startsWith('~') && expressionOf(url).test(path)) ??
    own
      .filter(({ url }) => url.startsWith('/') && path.startsWith(url))
      .toSorted((a, b) => b.url.length - a.url.length)[0]
  );
}

/** The name among these that stands for a host: the same, else the longest wildcard; undefined when none does. */
export function matchDomain(names: ReadonlySet<string>, host: string): string | undefined {
  if (names.has(host)) return host;
  return [...names].filter((name) => covers(name, host)).toSorted((a, b) => b.length - a.length)[0];
}

function covers(name: string, host: string): boolean {
  if (name.startsWith('*.')) return host.length >= name.length && host.endsWith(name.slice(1));
  return name.endsWith('.*') && host.length >= name.length && host.startsWith(name.slice(0, -1));
}

/** The expression of a url that begins with `~`. @throws SyntaxError */
export function expressionOf(url: string): RegExp {
  return url.startsWith('~*') ? new RegExp(url.slice(2).trim(), 'i') : new RegExp(url.slice(1).trim());
}
