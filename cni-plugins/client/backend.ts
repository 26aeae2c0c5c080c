/** The address on which the agent listens. */
export type Backend =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

/** Parses `unix:/path`, `unix:///path`, `host:port` or `[v6]:port`; undefined when the text is none of these. */
export function parseBackend(text: string): Backend | undefined {
  const unix = /^unix:(?:\/\/)?(\/.+)$/.exec(text)?.[1];
  if (unix !== undefined) return Buffer.byteLength(unix) <= SUN_PATH_BYTES ? { kind: 'unix', path: unix } : undefined;
  const tcp = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(text);
  const host = tcp?.[1] ?? tcp?.[2];
  const port = Number(tcp?.[3]);
  if (host === undefined || port < 1 || port > 65_535) return undefined;
  return { kind: 'tcp', host, port };
}

/** Longest path of a Unix socket: `sun_path` without its final zero, bytes. @see unix(7) */
const SUN_PATH_BYTES = 107;
