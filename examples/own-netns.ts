/** Gives an example a network namespace of its own, so that it can be run anywhere and leaves nothing behind. */
import { randomBytes } from 'node:crypto';
import { createNetns, deleteNetns, type Netns, warmThreadPool } from '../netlink/netns.ts';

/** Runs `example` with a new namespace, and removes the namespace afterwards. Needs root. */
export async function inOwnNetns(example: (netns: Netns) => void | Promise<void>): Promise<void> {
  // First of all: threads of the pool keep the namespace they start in.
  await warmThreadPool();
  const name = `tke-example-${randomBytes(4).toString('hex')}`;
  using netns = createNetns(name);
  try {
    await example(netns);
  } finally {
    deleteNetns(name);
  }
}
