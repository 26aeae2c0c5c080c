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
