/** Folders of the system's own tools; a test may be started with a PATH that lacks the sbin ones. */
const SYSTEM_PATH = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'] as const;

/**
 * The environment that child processes get: ours, but without npm's folders in PATH. A package there has an executable
 * named `nft`, which is not nftables.
 */
export function childEnv(own: Readonly<Record<string, string | undefined>> = process.env): Record<string, string> {
  const entries = (own['PATH'] ?? '').split(':').filter((folder) => !folder.includes('node_modules'));
  const path = [...new Set([...entries, ...SYSTEM_PATH])].filter((folder) => folder !== '').join(':');
  const kept = Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...Object.fromEntries(kept), PATH: path };
}

/** Names the folder in which Node keeps what it compiled of the programs of tests; unset, it compiles each time. */
const CACHE_VARIABLE = 'TKE_ENI_HELPER_CACHE';

/** The environment of one command: a program that Node runs from our sources need not be compiled each time. */
export function envOf(argv: readonly string[]): Record<string, string> {
  const env = childEnv();
  const cache = env[CACHE_VARIABLE] ?? '';
  return cache !== '' && argv.includes(process.execPath) ? { ...env, NODE_COMPILE_CACHE: cache } : env;
}
