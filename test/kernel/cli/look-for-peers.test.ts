import { randomBytes } from 'node:crypto';
import { readlinkSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { readVethPeers } from '../../../cli/commands/diff/read-veth-peers.ts';
import type { LostPeer } from '../../../inspection/judge/compare-links.ts';
import { readNetnsFacts } from '../../../inspection/node/read-netns-facts.ts';
import { openNetns, warmThreadPool } from '../../../netlink/netns.ts';
import { Child } from '../../../sim/support/child.ts';
import { NetnsView } from '../../../sim/support/netns.ts';
import { run } from '../../../sim/support/run.ts';
import { deleteNetnsNames, reservePrefix } from '../../../sim/support/run-names.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';

/** Says where the other end of a veth of `host` is, as repair would ask. */
function peerOf(host: NetnsView, ifname: string): LostPeer | undefined {
  using netns = openNetns(host.path);
  const { links } = readNetnsFacts(netns, { sysctls: false });
  const veth = links.find((link) => link.ifname === ifname);
  return veth === undefined ? undefined : readVethPeers({ hostRoot: '/' }, links, [veth]).get(veth.ifindex);
}

/**
 * Mounts a namespace on a file, in a mount namespace of its own, until the process ends. In the mount namespace of this
 * process each program that another test starts with `ip netns exec` would take the mount over, and keep it.
 */
function startMount(netns: string, point: string): Child {
  const script = 'mount --bind "$1" "$2" && echo mounted && exec sleep 60';
  return new Child(['unshare', '--mount', '--propagation', 'slave', 'sh', '-c', script, 'sh', netns, point]);
}

/** A number of a link that is far above those that the kernel gives. */
function uniqueIndex(): string {
  return String((1 << 24) + randomBytes(3).readUIntBE(0, 3));
}

test('readVethPeers: tells a sandbox that lives from one that only a leaked descriptor holds', async (t) => {
  t.timeout(60_000);
  await warmThreadPool();
  const { prefix, release } = reservePrefix();
  const dir = createTempDir('peers');
  const [host, sandbox] = [new NetnsView(`${prefix}host`), new NetnsView(`${prefix}sandbox`)];
  try {
    await run(['ip', 'netns', 'add', host.name]);
    await run(['ip', 'netns', 'add', sandbox.name]);
    await host.ip('link', 'add', 'both', 'type', 'veth', 'peer', 'name', 'here');
    // Numbers that no other namespace of this machine has: an end is known by them.
    const [own, other] = [uniqueIndex(), uniqueIndex()];
    const peer = ['peer', 'name', 'eth0', 'index', other, 'netns', sandbox.name];
    await host.ip('link', 'add', 'lost', 'index', own, 'type', 'veth', ...peer);
    t.deepEqual(peerOf(host, 'both'), { kind: 'host' });
    t.deepEqual(peerOf(host, 'lost'), { kind: 'netns', path: sandbox.path });

    const child = sandbox.start(['sleep', '60']);
    // The child is in the namespace once it has become what it was told to run.
    await waitUntil(() => readlinkSync(`/proc/${child.pid}/exe`).endsWith('/sleep'), { what: 'sleep in the sandbox' });
    using leaked = openNetns(sandbox.path);
    // As Docker names them: somewhere else, with a blank for good measure.
    const point = dir.join('a name');
    writeFileSync(point, '');
    const mounting = startMount(sandbox.path, point);
    t.teardown(() => mounting.stop('SIGKILL'));
    await waitUntil(() => mounting.stdout.includes('mounted'), { what: 'the namespace is mounted elsewhere' });
    await run(['ip', 'netns', 'del', sandbox.name]);
    t.deepEqual(peerOf(host, 'lost'), { kind: 'netns', path: point });
    await mounting.stop('SIGKILL');
    t.deepEqual(peerOf(host, 'lost'), { kind: 'netns', path: `/proc/${child.pid}/ns/net` });

    await child.stop('SIGKILL');
    t.true(leaked.fd >= 0);
    const isWholeView = readlinkSync('/proc/self/ns/pid') === 'pid:[4026531836]';
    t.is(peerOf(host, 'lost')?.kind, isWholeView ? 'nowhere' : 'unknown');
  } finally {
    await deleteNetnsNames([host.name, sandbox.name]);
    dir.close();
    release();
  }
});
