import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { childEnv } from '../../sim/support/child-env.ts';
import type { NetnsView } from '../../sim/support/netns.ts';

/** A port of this machine's loopback behind which the API server of a network namespace stands. */
export type Relay = { readonly url: string; close(): Promise<void> };

/** Opens a port on 127.0.0.1 that leads to port 6443 in a network namespace. The caller closes it. */
export async function openRelay(netns: NetnsView): Promise<Relay> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  // A connection belongs to the namespace of the process that makes it; the listening socket to ours.
  const [command = '', ...args] = netns.argv([process.execPath, join(import.meta.dirname, 'relay-main.ts')]);
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: childEnv() });
  const exited = once(child, 'exit');
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject);
    child.send('listen', server, (error) => (error === null ? resolve() : reject(error)));
  });
  server.close();
  return {
    url: `https://127.0.0.1:${port}`,
    close: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
