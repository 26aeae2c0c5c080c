import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createNetns, deleteNetns, type Netns } from '../../../../netlink/netns.ts';
import { openRtnetlinkIn, type Rtnetlink } from '../../../../netlink/rtnetlink.ts';

/** A command that takes longer hangs: it is killed, and the test fails. */
const LONGEST_COMMAND_MS = 20_000;

type Json = Readonly<Record<string, unknown>>;

/** A network namespace of a test's own, with a connection into it and iproute2 as the judge of what is in it. */
export class TestNetns implements Disposable {
  readonly name = `tke-test-${randomBytes(5).toString('hex')}`;
  readonly netns: Netns = createNetns(this.name);
  readonly rtnl: Rtnetlink = openRtnetlinkIn(this.netns);

  /** Runs `ip` here; it must succeed. */
  ip(line: string): string {
    return execFileSync('ip', ['-n', this.name, ...line.split(' ')], {
      encoding: 'utf8',
      stdio: 'pipe',
      timeout: LONGEST_COMMAND_MS,
    });
  }

  /** Runs `ip -j` here; a table that does not exist is empty. */
  ipJson(line: string): readonly Json[] {
    const result = spawnSync('ip', ['-n', this.name, '-j', ...line.split(' ')], { encoding: 'utf8' });
    const list: unknown = JSON.parse(result.stdout.trim() === '' ? '[]' : result.stdout);
    return Array.isArray(list) ? list : [];
  }

  /** Makes a veth pair `v0` and `v1`, both up; returns the index of `v0`. */
  addVethPair(): number {
    const ifindex = this.rtnl.link.add({ kind: 'veth', ifname: 'v0', up: true, peer: { ifname: 'v1' } });
    this.ip('link set v1 up');
    return ifindex;
  }

  [Symbol.dispose](): void {
    this.rtnl.close();
    this.netns.close();
    deleteNetns(this.name);
  }
}
