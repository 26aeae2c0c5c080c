import { join } from 'node:path';
import { Child } from '../../../sim/support/child.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';

/** One who-server: it says `name` in a namespace, by UDP from `address` alone. */
type WhoSpec = { readonly netns: NetnsView; readonly name: string; readonly address?: string };

/** Starts one process that serves in all these namespaces, and waits until it does. The caller stops it. */
export async function startWhoServers(port: number, servers: readonly WhoSpec[]): Promise<Child> {
  const args = servers.flatMap(({ netns, name, address = '::' }) => [name, netns.path, address]);
  const child = new Child([process.execPath, join(import.meta.dirname, 'who-server.ts'), `${port}`, ...args]);
  await waitUntil(() => child.stdout.includes('ready'), {
    what: `servers ${servers.map(({ name }) => name).join(' ')}`,
    everyMs: 5,
    explain: () => child.stderr,
  });
  return child;
}
