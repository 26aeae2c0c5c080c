/** Runs synchronous code inside a namespace: `node examples/read-sysctl-in-netns.ts`. */
import { readFileSync } from 'node:fs';
import { withNetns } from '../netlink/netns.ts';
import { inOwnNetns } from './own-netns.ts';

await inOwnNetns((netns) => {
  const links = withNetns(netns, () => readFileSync('/proc/thread-self/net/dev', 'utf8').trim().split('\n').length - 2);
  console.log('links in the new namespace:', links);
});
