import { randomBytes } from 'node:crypto';
import { enterNetns } from '../../dataplane/enter-netns.ts';
import { openNft } from '../../dataplane/nft.ts';
import { openMonitorIn } from '../../netlink/monitor.ts';
import { createNetns, deleteNetns } from '../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../netlink/rtnetlink.ts';
import { openSysctl } from '../../sysctl/sysctl.ts';
import type { ContractMachine, ContractNetns } from './machine.ts';

/** How long what the kernel does in its own time may take on a busy machine, milliseconds. */
const LONGEST_MS = 20_000;
const LOOK_MS = 5;

/** Runs work on the kernel of this machine, in namespaces that end with it. */
export async function withRealMachine(work: (machine: ContractMachine) => Promise<void> | void): Promise<void> {
  const ends: (() => void)[] = [];
  try {
    await work({
      host: createReal(ends),
      createNetns: () => createReal(ends),
      enter: enterNetns,
      until,
      finish: (promise) => promise,
    });
  } finally {
    for (const end of ends) end();
  }
}

function createReal(ends: (() => void)[]): ContractNetns {
  const name = `tke-test-${randomBytes(5).toString('hex')}`;
  const netns = createNetns(name);
  const closers: (() => void)[] = [];
  const openRtnetlink = () => {
    const rtnetlink = openRtnetlinkIn(netns);
    closers.push(() => rtnetlink.close());
    return rtnetlink;
  };
  const end = (): void => {
    for (const close of closers.splice(0)) close();
    netns.close();
    deleteNetns(name);
  };
  ends.push(end);
  return {
    ...{ fd: netns.fd, path: netns.path, rtnetlink: openRtnetlink(), sysctl: openSysctl(netns), openRtnetlink, end },
    nft: openNft({ netnsPath: netns.path }),
    monitor: (options) => {
      const monitor = openMonitorIn(netns, options);
      closers.push(() => monitor.close());
      return monitor;
    },
  };
}

async function until(holds: () => boolean): Promise<boolean> {
  const endMs = performance.now() + LONGEST_MS;
  while (!holds()) {
    if (performance.now() > endMs) return false;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return true;
}
