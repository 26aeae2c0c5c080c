import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createNetns, deleteNetns, warmThreadPool } from '../../netlink/netns.ts';
import { openRtnetlinkIn, type Rtnetlink } from '../../netlink/rtnetlink.ts';

/** A network namespace to measure in, and what the routes and rules in it are. */
export type Bed = Disposable & {
  readonly rtnl: Rtnetlink;
  readonly netns: string;
  /** Index of `bench0`, one end of a veth pair, both ends up. */
  readonly oif: number;
  /** Destinations of the routes, /32 each; the rules are from the first of them. */
  readonly dsts: readonly string[];
  /** Runs `ip` in the namespace; it must succeed. */
  ip(...args: readonly string[]): void;
  /** Writes lines for `ip -batch`. @returns the file's path */
  batchFile(name: string, lines: readonly string[]): string;
};

/** Makes a bed for `routes` routes, at most 65,536 of them. Disposing of it removes everything. */
export async function openBed(routes: number): Promise<Bed> {
  await warmThreadPool();
  using undo = new DisposableStack();
  const netns = `tke-bench-${randomBytes(4).toString('hex')}`;
  const folder = undo.adopt(mkdtempSync(join(tmpdir(), 'tke-bench-')), (path) => {
    rmSync(path, { recursive: true, force: true });
  });
  undo.adopt(netns, deleteNetns);
  const rtnl = undo.use(openRtnetlinkIn(undo.use(createNetns(netns))));
  const oif = rtnl.link.add({ kind: 'veth', ifname: 'bench0', up: true, peer: { ifname: 'bench1' } });
  rtnl.link.set({ ifindex: rtnl.link.get({ ifname: 'bench1' })?.ifindex ?? 0, up: true });
  const kept = undo.move();
  return {
    rtnl,
    netns,
    oif,
    dsts: Array.from({ length: routes }, (_, i) => `10.0.${i >> 8}.${i & 255}/32`),
    ip(...args) {
      const result = spawnSync('ip', ['-n', netns, ...args], { maxBuffer: 64 << 20 });
      if (result.status !== 0) {
        throw new Error(`ip ${args.join(' ')} failed: ${result.error?.message ?? result.stderr.toString()}`);
      }
    },
    batchFile(name, lines) {
      const path = join(folder, name);
      writeFileSync(path, lines.map((line) => `${line}\n`).join(''));
      return path;
    },
    [Symbol.dispose]: () => kept.dispose(),
  };
}

/** Runs something and returns how long it took, milliseconds. */
export function timed(run: () => void): number {
  const start = performance.now();
  run();
  return performance.now() - start;
}
